"""Recording how proposals fare over known answers, without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from drafted_answers import Answer, Outcome, drafted
from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.proposer import ProposalRequest, ProposedTokens
from record_tables import acceptance_table, draftings, write_lines

COUNTING = Answer("list", (1, 2, 3), tuple(range(4, 24)))


class CountsOn(BaseProposer):
    """Counts on; from 10 on only two ids far, and the second of them wrong."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        return [ProposedTokens(self._ids(int(request.context.token_ids[-1]), request.depth)) for request in batch]

    def _ids(self, last: int, depth: int) -> tuple[int, ...]:
        return (last + 1, 0) if last >= 10 else tuple(range(last + 1, last + 1 + depth))


def make() -> CountsOn:
    return CountsOn(ProposerSetup(100, "f"))


def test_rounds_are_those_of_an_engine() -> None:
    found = drafted([COUNTING], make, depth=4, repeats=False)
    # 4 comes out of the prompt; then 5-9, 10-14 (from 9), 15-16, 17-18, 19-20 (five ids are left); 21 has fewer.
    assert found == {"list": Counter({Outcome(4, 4): 2, Outcome(2, 1): 3})}


def test_a_wish_that_the_end_of_the_answer_cuts_is_not_recorded() -> None:
    assert drafted([Answer("chat", (1,), (2, 3, 4))], make, depth=4, repeats=False) == {"chat": Counter()}


@pytest.mark.parametrize("name", list(draftings()))
def test_answers_are_drafted_better_the_second_time_only_by_who_remembers(name: str) -> None:
    text = (7, 3, 9, 1, 8, 2, 6, 4, 5, 11, 13, 12, 17, 15, 19, 14)
    table = acceptance_table([Answer("chat", (1, 2), text), Answer("chat", (2, 1), text)], depth=3)
    accepted = sum(accepted * rounds for _, accepted, rounds in table[name]["chat"])
    assert (accepted > 0) == (name == "suffix, answers given before")


def test_a_table_has_a_line_for_each_outcome(tmp_path: Path) -> None:
    write_lines(tmp_path / "new" / "table.json", {"outcomes": {"chat": [[0, 0, 5], [2, 1, 3]]}})
    assert "   [0, 0, 5],\n   [2, 1, 3]\n" in (tmp_path / "new" / "table.json").read_text()


def test_a_table_has_a_line_for_all_ids_of_an_answer(tmp_path: Path) -> None:
    write_lines(tmp_path / "table.json", {"answers": [asdict(COUNTING)]})
    text = (tmp_path / "table.json").read_text()
    assert '   "prompt_ids": [1, 2, 3],\n' in text
    assert json.loads(text)["answers"][0]["answer_ids"] == list(range(4, 24))
