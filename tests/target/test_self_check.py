"""A target notices when it no longer computes what it did at its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from outrider_doubles.engine_bench import VOCAB_SIZE, Collector, EngineBench, toy_settings
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.toy_forward import ToyForward

from outrider_kernels.own_linear import own_product
from outrider_kernels.panel_product import PanelProduct
from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import EngineFailed, NotReady
from outrider_target import lean_weights
from outrider_target.block_pool import BlockPool
from outrider_target.forward import RaggedBatch
from outrider_target.forward_choice import choose_forward
from outrider_target.lean_forward import LeanForward
from outrider_target.lean_weights import LeanLinear
from outrider_target.probe import _text, fingerprint_blocks, logits_fingerprint, probe_exactness
from outrider_target.self_check import SelfCheck
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

Floats = npt.NDArray[np.float32]

INTERVAL_S = 60.0


class Changing(ToyForward):
    """Computes something else from the moment that it is told to."""

    changed = False

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        logits = super().run(batch)
        if self.changed:
            logits[-1, -1] = torch.nextafter(logits[-1, -1], torch.tensor(100.0))
        return logits


def fingerprint_of(forward: ToyForward) -> str:
    forward.allocate_cache(8)
    return logits_fingerprint(forward, range(fingerprint_blocks(forward)))


class Bench(EngineBench):
    """An engine over a forward pass that can be changed."""

    def __init__(self, fingerprint: str | None, **changes: object) -> None:
        self.changing = Changing(VOCAB_SIZE)
        super().__init__(toy_settings(**changes), forward=self.changing, logits_fingerprint=fingerprint)

    def ask(self, max_tokens: int = 50) -> Collector:
        sampling = SamplingParams(max_tokens=max_tokens, temperature=0, ignore_eos=True)
        return self.submit(GenerationRequest("toy", prompt_token_ids=(3, 4, 5), sampling=sampling), seed=1)

    @property
    def checks(self) -> float:
        return self.metric("outrider_self_checks_total")


FINGERPRINT = fingerprint_of(ToyForward(VOCAB_SIZE))


def test_it_checks_itself_once_an_interval_busy_or_idle() -> None:
    bench = Bench(FINGERPRINT)
    collector = bench.ask(max_tokens=8)
    for advanced_s, checks in ((0.0, 0), (INTERVAL_S, 1), (INTERVAL_S / 2, 1), (INTERVAL_S / 2, 2)):
        bench.clock.advance(advanced_s)
        assert bench.engine.step() and bench.engine.step()
        assert bench.checks == checks
    while bench.engine.step():
        pass
    assert collector.finished is not None
    bench.clock.advance(INTERVAL_S)
    assert not bench.engine.step(), "nothing to do but the check"
    assert bench.checks == 3


def test_one_changed_bit_fails_what_was_begun_and_sends_the_others_elsewhere() -> None:
    bench = Bench(FINGERPRINT)
    bench.changing.changed = True
    begun = bench.ask()
    bench.engine.step()
    bench.clock.advance(INTERVAL_S)
    with pytest.raises(EngineFailed, match=f"at the start it was {FINGERPRINT}") as raised:
        bench.engine.step()
    queued = bench.ask()
    bench.engine.fail(raised.value)
    assert isinstance(begun.error, EngineFailed) and isinstance(queued.error, NotReady)
    with pytest.raises(NotReady, match="the engine stopped: the logits of a fixed text have"):
        bench.ask()


@pytest.mark.parametrize(
    ("fingerprint", "changes"), [(None, {}), (FINGERPRINT, {"self_check_interval_s": None})], ids=["unknown", "off"]
)
def test_it_does_not_check_what_it_need_not(fingerprint: str | None, changes: dict[str, object]) -> None:
    bench = Bench(fingerprint, **changes)
    bench.changing.changed = True
    bench.clock.advance(10 * INTERVAL_S)
    bench.engine.step()
    assert bench.checks == 0.0


def test_a_full_cache_is_not_disturbed_and_the_check_comes_when_there_is_room() -> None:
    forward, clock = ToyForward(VOCAB_SIZE), ManualClock()
    forward.allocate_cache(4)
    pool = BlockPool(4)
    check = SelfCheck(forward, pool, FINGERPRINT, INTERVAL_S, clock)
    held = pool.allocate(2)
    clock.advance(INTERVAL_S)
    assert held is not None and not check.run_if_due()
    pool.release(held)
    assert check.run_if_due()
    assert pool.num_available == 4
    assert not check.run_if_due(), "the next one is due after another interval"


def _panels(linear: LeanLinear) -> Floats:
    assert isinstance(linear.multiply, PanelProduct)
    return linear.multiply.panels


PLACES: dict[str, Callable[[LeanForward], Floats]] = {
    "embedding": lambda forward: forward._weights.embedding[_text(forward)[0]].numpy(),
    "norm": lambda forward: forward._weights.final_norm.weight,
    "linear": lambda forward: _panels(forward._weights.layers[0].gate_up),
    "head": lambda forward: _panels(forward._weights.head),
    "rotary table": lambda forward: forward._rotary.cosines[1],
}


@pytest.mark.parametrize("place", PLACES)
def test_one_number_anywhere_in_the_memory_of_a_lean_decoder_is_missed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean_weights, "packed_product", own_product)  # of which a test can reach the weights
    forward = choose_forward(write_tiny_checkpoint(tmp_path), "float32", 128).forward
    assert isinstance(forward, LeanForward)
    expected = probe_exactness(forward).fingerprint
    forward.allocate_cache(8)
    blocks = range(fingerprint_blocks(forward))
    assert logits_fingerprint(forward, blocks) == expected
    PLACES[place](forward).reshape(-1)[0] += 0.5
    assert logits_fingerprint(forward, blocks) != expected
