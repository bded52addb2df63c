"""The ratio rules in Triton emit the ids of the CPU's form."""

import numpy as np
import pytest
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draft_rows import MAX_LISTED_IDS, MAX_WEIGHT, DraftRows
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.triton_twins.ratio import verify_by_ratio_on_device

CASES = [
    pytest.param(5, [0, 1, 7, 3], {}, 3, 25, id="smallest vocabulary, ragged, a row of depth 0"),
    pytest.param(64, [3, 2], {"temperature": 0.0}, 8, 4, id="greedy"),
    pytest.param(1025, [2, 4], {"top_p": 0.8}, 20, 4, id="top-p, one id more than a block"),
    pytest.param(8193, [1, 3], {"top_k": 40, "min_p": 0.01, "temperature": 1.4}, MAX_LISTED_IDS, 2, id="longest laws"),
    pytest.param(49152, [2], {"temperature": 2.0}, 64, 1, id="a real vocabulary"),
]


def laws_and_rows(source: np.random.Generator, depths: list[int], vocab_size: int, listed: int):  # type: ignore[no-untyped-def]
    starts, ids, weights, proposed = [0], list[int](), list[int](), list[int]()
    for _ in range(sum(depths)):
        size = min(int(source.integers(1, listed + 1)), vocab_size)
        support, weight = source.choice(vocab_size, size, replace=False), source.integers(1, MAX_WEIGHT, size)
        proposed.append(int(source.choice(support, p=weight / weight.sum())))
        if source.random() < 0.8:
            ids += support.tolist()
            weights += weight.tolist()
        starts.append(len(ids))
    logit_starts = np.cumsum([0, *(depth + 1 for depth in depths)])
    rows = VerifyRows(np.int32(logit_starts), np.int32(proposed), np.arange(5, 5 + len(depths), dtype=np.int64))
    return rows, DraftRows(np.int32(starts), np.int32(ids), np.int64(weights))


@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
@pytest.mark.parametrize(("vocab_size", "depths", "filters", "listed", "trials"), CASES)
def test_triton_emits_the_ids_of_the_cpu(
    vocab_size: int, depths: list[int], filters: dict[str, float], listed: int, trials: int, block: bool
) -> None:
    source, count = np.random.default_rng(vocab_size), len(depths)
    values = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **filters}
    accepted = 0
    for trial in range(trials):
        rows, draft = laws_and_rows(source, depths, vocab_size, listed)
        logits = torch.from_numpy(source.standard_normal((int(rows.logit_starts[-1]), vocab_size)).astype(np.float32))
        owners = np.repeat(np.arange(count), depths)
        at = (np.arange(len(rows.proposed)) + owners, rows.proposed.astype(np.int64))
        logits[at] += 1 + np.log(vocab_size)  # likely, yet not sure
        sampling = SamplingRows(
            np.full(count, values["temperature"]),
            np.full(count, values["top_k"], np.int32),
            np.full(count, values["top_p"]),
            np.full(count, values["min_p"]),
            np.arange(trial * count, (trial + 1) * count, dtype=np.uint64),
        )
        expected = verify_by_ratio(logits, rows, sampling, draft, block=block)
        result = verify_by_ratio_on_device(logits, rows, sampling, draft, block=block)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()
        accepted += int(expected.accepted_counts.sum())
    assert accepted > 0 or trials < 4


def test_a_drafter_equal_to_the_target_is_always_accepted() -> None:
    rows = VerifyRows(np.int32([0, 3]), np.int32([1, 0]), np.int64([9]))
    draft = DraftRows(np.int32([0, 2, 4]), np.int32([0, 1, 0, 1]), np.int64([7, 7, 7, 7]))
    for seed in range(6):
        sampling = SamplingRows(np.ones(1), np.zeros(1, np.int32), np.ones(1), np.zeros(1), np.uint64([seed]))
        for block in (False, True):
            result = verify_by_ratio_on_device(torch.zeros(3, 2), rows, sampling, draft, block=block)
            assert result.accepted_counts.tolist() == [2]
