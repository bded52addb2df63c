"""What changes in the middle of an accepted run, over real gRPC: the run goes on across it, as without drafts.

Drafts are the very answer. Every id of a run must be judged with those before it in the same run taken in already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from outrider_doubles.chaos_checkpoint import write_repetitive_checkpoint
from outrider_doubles.draft_house import House, Outcome, draft_house
from outrider_doubles.tiny_tokenizer import ids_of

from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

PROMPT = ids_of("one_two_one_two")
PLAIN = SamplingParams(temperature=0.8, seed=0, max_tokens=24, ignore_eos=True)
FEW = replace(PLAIN, temperature=0.0, allowed_token_ids=ids_of("abcdefghij"))
"""So few ids that they come again soon."""
DEPTH = 8
LEAST = 12
STOP = 7
ATTEMPTS = 100
"""A draft that comes too late moves the runs after it: asked so often, one of them lies across the boundary."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """What stands at place `cause` of an answer decides about place `effect`."""

    cause: int
    effect: int

    def is_inside(self, run: range) -> bool:
        """Whether a run holds both."""
        return self.cause in run and self.effect in run


def departure(plain: Sequence[int], changed: Sequence[int]) -> int:
    return next(place for place, (one, other) in enumerate(zip(plain, changed, strict=True)) if one != other)


def of_penalty(plain: Outcome, changed: Outcome) -> Boundary:
    """The id that would come a second time is passed over."""
    effect = departure(plain.token_ids, changed.token_ids)
    again = plain.token_ids[effect]
    assert again not in PROMPT and changed.token_ids[:effect].count(again) == 1
    return Boundary(changed.token_ids.index(again), effect)


def of_bad_word(plain: Outcome, changed: Outcome) -> Boundary:
    """The word's first id came, its last one may not."""
    effect = departure(plain.token_ids, changed.token_ids)
    assert plain.token_ids[effect - 1 : effect + 1] == [316, 190]
    return Boundary(effect - 1, effect)


def of_min_tokens(plain: Outcome, changed: Outcome) -> Boundary:
    """The stop id is by far the likeliest all along, and comes where it first may."""
    assert plain.token_ids == [STOP]
    assert changed.token_ids.index(STOP) == LEAST and len(changed.token_ids) == LEAST + 1
    return Boundary(LEAST - 1, LEAST)


def of_form(plain: Outcome, changed: Outcome) -> Boundary:
    """Letters only, then digits only."""
    assert changed.text[:LEAST].isalpha() and changed.text[LEAST:].isdigit()
    return Boundary(LEAST - 1, LEAST)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Sampling parameters, a change of them, and where what the change does turns up in the two answers."""

    plain: SamplingParams
    change: Mapping[str, object]
    boundary: Callable[[Outcome, Outcome], Boundary]


CROSSINGS = {
    "penalty": Crossing(FEW, {"repetition_penalty": 1.5}, of_penalty),
    "bad word": Crossing(PLAIN, {"bad_word_ids": ((316, 190),)}, of_bad_word),
    "min tokens": Crossing(
        replace(PLAIN, stop_token_ids=(STOP,), logit_bias={STOP: 100.0}), {"min_tokens": LEAST}, of_min_tokens
    ),
    "form": Crossing(replace(PLAIN, ignore_eos=False), {"regex": "[a-f]{12}[0-9]{12}"}, of_form),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_repetitive_checkpoint(tmp_path_factory.mktemp("tiny"))


async def answer(house: House, sampling: SamplingParams, **speculation: object) -> Outcome:
    options = SpeculationOptions(**speculation)  # type: ignore[arg-type]
    return await house.outcome(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling, speculation=options))


@pytest.mark.parametrize("name", CROSSINGS)
async def test_an_accepted_run_goes_across_what_changes_in_its_middle(name: str, model: Path) -> None:
    crossing = CROSSINGS[name]
    changed = replace(crossing.plain, **crossing.change)  # type: ignore[arg-type]
    async with draft_house(model, ("custom",), DEPTH) as house:
        plain = await answer(house, crossing.plain, max_depth=0)
        expected = await answer(house, changed, max_depth=0)
        boundary = crossing.boundary(plain, expected)
        options = {"phrases": [expected.token_ids]}
        await house.hire(
            "custom", {"method": "custom_class", "model": "custom_proposer.Dictionary", "options": options}
        )
        seen: list[list[range]] = []
        while not any(boundary.is_inside(run) for runs in seen for run in runs):
            assert len(seen) < ATTEMPTS, (boundary, seen)
            drafted = await answer(house, changed, pool="custom")
            assert drafted == expected
            seen.append(drafted.accepted_runs)
