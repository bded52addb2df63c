"""Over a full vocabulary, sampled ids follow the exact law, tail included.

A vocabulary of five hardly ever meets the largest noise values. In one of 49152, noise that rounds to infinity emits a
uniformly random id at three positions of a thousand: the last test shows that such a fault would be noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.verify import verify

VOCAB_SIZE = 49152
BATCH = 64
NUM_BATCHES = 400
SMALLEST_BIN = 20.0
RECORDED = Path(__file__).parent / "recorded" / "next_token_law.json"


def power_law() -> np.ndarray:
    """Logits [V]: a power law over ranks with a sharp head, ranks spread over the ids."""
    ranks = np.arange(VOCAB_SIZE)
    logits = np.empty(VOCAB_SIZE, np.float32)
    logits[(ranks * 30011 + 7) % VOCAB_SIZE] = -1.8 * np.log(ranks + 1.0) - 0.3 * (ranks > 3)
    return logits


def recorded_law() -> np.ndarray:
    """Logits [V]: what the embedded model gave its likeliest 1024 ids after a text, and the rest in equal shares."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    others = VOCAB_SIZE - len(recorded["ids"])
    logits = np.full(VOCAB_SIZE, np.log(recorded["rest"] / others), np.float32)
    logits[recorded["ids"]] = recorded["log_probabilities"]
    return logits


def draws(logits: np.ndarray, seeds: str) -> np.ndarray:
    """Ids drawn through `verify`, rows differing in seed or in position."""
    table = torch.from_numpy(np.tile(logits, (BATCH, 1)))
    ones, counter = np.ones(BATCH), np.arange(BATCH)
    ids = []
    for batch in range(NUM_BATCHES):
        row = counter + batch * BATCH
        seed, position = (row, np.full(BATCH, 40)) if seeds == "consecutive seeds" else (np.full(BATCH, 9), row)
        sampling = SamplingRows(ones, np.zeros(BATCH, np.int32), ones, np.zeros(BATCH), seed.astype(np.uint64))
        rows = VerifyRows(np.arange(BATCH + 1, dtype=np.int32), np.zeros(0, np.int32), position.astype(np.int64))
        ids.append(verify(table, rows, sampling).emitted)
    return np.concatenate(ids)


def p_value(ids: np.ndarray, logits: np.ndarray) -> float:
    """Chi-square by rank; ranks share a bin until it is large enough."""
    probabilities = np.exp(logits.astype(np.float64))
    order = np.argsort(-probabilities)
    expected = probabilities[order] * (len(ids) / probabilities.sum())
    counts = np.bincount(ids, minlength=VOCAB_SIZE)[order]
    bins = np.floor(expected.cumsum() / SMALLEST_BIN)
    bins = np.unique(np.minimum(bins, bins[-1] - 1), return_inverse=True)[1]
    assert bins[-1] > 50
    merged = np.bincount(bins, expected)
    return float(chisquare(np.bincount(bins, counts), merged * (len(ids) / merged.sum())).pvalue)


@pytest.mark.parametrize("law", [power_law, recorded_law])
@pytest.mark.parametrize("seeds", ["consecutive seeds", "consecutive positions"])
def test_ids_follow_the_law_of_a_full_vocabulary(seeds: str, law: Callable[[], np.ndarray]) -> None:
    logits = law()
    assert p_value(draws(logits, seeds), logits) > 1e-3


def test_three_uniformly_random_ids_in_a_thousand_would_be_noticed() -> None:
    logits, source = power_law(), np.random.default_rng(1)
    ids = source.choice(VOCAB_SIZE, BATCH * NUM_BATCHES, p=np.exp(logits) / np.exp(logits).sum())
    assert p_value(ids, logits) > 1e-3
    spoilt = source.random(len(ids)) < 0.003
    assert p_value(np.where(spoilt, source.integers(0, VOCAB_SIZE, len(ids)), ids), logits) < 1e-6
