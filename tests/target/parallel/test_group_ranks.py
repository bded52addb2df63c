"""Ranks over PyTorch's collectives, in processes of their own: gloo does here what nccl does on GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2}

MEET = """
import sys, pathlib
import torch
from outrider_target.parallel.group_ranks import join_group
from outrider_target.parallel.meeting import MeetingHost, MeetingPoint, join
from outrider_target.parallel.ranks import ordered_sum

rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
torch.set_num_threads(1)
if rank == 0:
    host = MeetingHost("127.0.0.1", size)
    (folder / "point.tmp").write_text(f"{host.point.port} {host.point.token}")
    (folder / "point.tmp").rename(folder / "point")
    sockets = host.join(60)
else:
    while not (folder / "point").exists():
        pass
    port, token = (folder / "point").read_text().split()
    sockets = join(MeetingPoint("127.0.0.1", int(port), size, token), rank, "127.0.0.1", 60)
ranks = join_group(sockets, "gloo", 60)
"""

EXCHANGE = """
for dtype in (torch.float32, torch.bfloat16, torch.int64):
    parts = [torch.randn(5, 48, generator=torch.Generator().manual_seed(r)).to(dtype) for r in range(size)]
    found = ranks.gather_all(parts[rank])
    assert (ranks.rank, ranks.size) == (rank, size)
    assert all(torch.equal(a, b) for a, b in zip(found, parts, strict=True)), dtype
    first = ranks.gather_first(parts[rank])
    assert (first is None) == (rank > 0)
    assert first is None or all(torch.equal(a, b) for a, b in zip(first, parts, strict=True)), dtype
    if dtype.is_floating_point:
        expected = parts[0].float()
        for part in parts[1:]:
            expected = expected + part.float()
        assert torch.equal(ordered_sum(ranks, parts[rank]), expected.to(dtype))
        assert torch.equal(ordered_sum(ranks, parts[rank]), ordered_sum(sockets, parts[rank]))
values = torch.arange(4) + rank
ranks.broadcast(values)
assert values.tolist() == [0, 1, 2, 3]
"""

LEAVE = """
import atexit

def group_threads():
    names = [name.read_text().strip() for name in pathlib.Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]

ranks.gather_all(torch.zeros(3))
assert group_threads()
atexit._run_exitfuncs()
assert group_threads() == []
"""

STEP = """
import pytest
from outrider_doubles.direct_recorder import DirectRecorder
from outrider_doubles.interpreted_products import multiply_rows_alike
from outrider_doubles.ragged import Row, run_rows
from outrider_target.forward_building import built, surveyed_model
from outrider_target.forward_choice import lean_forward
from outrider_target.gpu.gpu_choice import gpu_forward
from outrider_target.parallel.stepping import LeadingForward, follow

surveyed = surveyed_model(folder / "model", "float32", 64, sockets)
multiply_rows_alike(pytest.MonkeyPatch())
make = lambda model: gpu_forward(model, 64, torch.device("cpu"), DirectRecorder(), ranks)
part = built(make, surveyed, sockets)
if rank:
    follow(part, sockets)
else:
    forward = LeadingForward(part, sockets)
    forward.allocate_cache(8)
    row = Row(list(range(20, 29)), 0, [0])
    [whole] = run_rows(forward, [row])
    pieces = [run_rows(forward, [Row(row.token_ids[a:b], a, [1]), Row([7], 0, [2])])[0] for a, b in ((0, 3), (3, 9))]
    assert torch.equal(torch.cat(pieces), whole)
    torch.save(whole, folder / "logits")
    forward.dismiss()
"""


def run_ranks(size: int, folder: Path, work: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(MEET + work)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(folder)], stderr=subprocess.PIPE, text=True, env=environment
        )
        for rank in range(size)
    ]
    try:
        errors = [process.communicate(timeout=300)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * size, "\n".join(errors)


@pytest.mark.parametrize("size", [2, 3])
def test_parts_arrive_in_order_and_sums_are_those_of_sockets(size: int, tmp_path: Path) -> None:
    run_ranks(size, tmp_path, EXCHANGE)


def test_threads_end_before_the_interpreter_does(tmp_path: Path) -> None:
    run_ranks(2, tmp_path, LEAVE)


def test_a_model_that_is_split_says_what_the_whole_one_says(tmp_path: Path) -> None:
    from outrider_doubles.ragged import Row, run_rows

    from outrider_target.forward_choice import choose_forward

    model = write_tiny_checkpoint(tmp_path / "model", num_hidden_layers=1, **SIZES)
    run_ranks(2, tmp_path, STEP)
    whole = choose_forward(model, "float32", 64).forward
    whole.allocate_cache(8)
    [expected] = run_rows(whole, [Row(list(range(20, 29)), 0, [0])])
    torch.testing.assert_close(torch.load(tmp_path / "logits"), expected, atol=1e-5, rtol=1e-4)
