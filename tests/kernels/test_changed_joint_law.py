"""Whole answers under penalties, bias and masks follow their exact joint law, and drafts change none of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.verify import verify

VOCAB_SIZE = 5
LENGTH = 3
NUM_REQUESTS = 20_000
PROMPT = [3, 3, 0]
ENDING, BAD_WORD = 4, (1, 2)
TABLE = (np.random.default_rng(3).standard_normal((31, VOCAB_SIZE)) * 1.2).astype(np.float32)


def raw_logits(answer: Sequence[int]) -> np.ndarray:
    """[5] after the beginning of an answer."""
    code = 0
    for token in answer:
        code = code * VOCAB_SIZE + token
    return TABLE[[0, 1, 6][len(answer)] + code]


def probabilities(answer: Sequence[int]) -> np.ndarray:
    """[5] of the next token, spelled out once more: masks, bias, penalties, softmax."""
    weights = []
    for token, logit in enumerate(raw_logits(answer).tolist()):
        z, count = logit + (0.7 if token == 2 else 0.0), list(answer).count(token)
        if count or token in PROMPT:
            z = z / 1.5 if z > 0 else z * 1.5
        z -= 0.4 * count + (0.9 if count else 0.0)
        early_end = token == ENDING and len(answer) < 2
        completes = token == BAD_WORD[1] and tuple(answer[-1:]) == BAD_WORD[:1]
        weights.append(0.0 if early_end or completes else math.exp(z))
    return np.array(weights) / sum(weights)


def change(answer: Sequence[int]) -> RowChange:
    """What a request with this beginning of an answer changes about its logits."""
    seen = sorted({*PROMPT, *answer})
    return RowChange(
        repetition=1.5,
        presence=0.9,
        frequency=0.4,
        seen_ids=np.array(seen, np.int32),
        seen_counts=np.array([list(answer).count(token) for token in seen], np.int32),
        bias_ids=np.array([2], np.int32),
        bias_values=np.array([0.7]),
        ending_positions=max(0, 2 - len(answer)),
        ending_ids=np.array([ENDING], np.int32),
        words=(np.array(BAD_WORD, np.int32),),
        recent_ids=np.array(answer[-1:], np.int32),
    )


def decode(drafts: np.ndarray | None) -> np.ndarray:
    """Answers [B, 3] in rounds of random depths up to the drafts' length."""
    source = np.random.default_rng(8)
    answers: list[list[int]] = [[] for _ in range(NUM_REQUESTS)]
    while active := [row for row in range(NUM_REQUESTS) if len(answers[row]) < LENGTH]:
        proposals = []
        for row in active:
            done = len(answers[row])
            depth = 0 if drafts is None else int(source.integers(0, LENGTH - done))
            proposals.append([] if drafts is None else drafts[row, done : done + depth].tolist())
        prefixes = [
            answers[row] + ids[:step]
            for row, ids in zip(active, proposals, strict=True)
            for step in range(len(ids) + 1)
        ]
        rows = VerifyRows(
            np.cumsum([0, *(len(ids) + 1 for ids in proposals)]).astype(np.int32),
            np.array([token for ids in proposals for token in ids], np.int32),
            np.array([len(PROMPT) + len(answers[row]) for row in active], np.int64),
        )
        count = len(active)
        seeds = np.array(active, np.uint64) + np.uint64(1)
        sampling = SamplingRows(np.ones(count), np.zeros(count, np.int32), np.ones(count), np.zeros(count), seeds)
        changes = stack_changes([change(answers[row]) for row in active])
        logits = torch.from_numpy(np.stack([raw_logits(prefix) for prefix in prefixes]))
        result = verify(logits, rows, sampling, changes)
        for place, row in enumerate(active):
            start = rows.logit_starts[place]
            answers[row] += result.emitted[start : start + result.accepted_counts[place] + 1].tolist()
    return np.array(answers)


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    return decode(None)


def test_answers_follow_the_joint_law(plain: np.ndarray) -> None:
    joint = [
        math.prod(probabilities(answer[:length])[answer[length]] for length in range(LENGTH))
        for answer in itertools.product(range(VOCAB_SIZE), repeat=LENGTH)
    ]
    law, counts = np.array(joint), np.bincount(plain @ [25, 5, 1], minlength=125)
    assert counts[law == 0].sum() == 0 and (law == 0).any()
    assert chisquare(counts[law > 0], law[law > 0] * len(plain)).pvalue > 1e-3


def test_good_bad_and_random_drafts_change_no_answer(plain: np.ndarray) -> None:
    source = np.random.default_rng(6)
    kind = source.integers(0, 3, (NUM_REQUESTS, 1))
    guesses = source.integers(0, VOCAB_SIZE, plain.shape)
    drafts = np.where(kind == 0, plain, np.where(kind == 1, (plain + 1) % VOCAB_SIZE, guesses))
    assert np.array_equal(decode(drafts), plain)
