"""A whole pass over a Llama-like decoder as one compiled function, which all threads enter once.

Called one by one, the kernels of a step wake a sleeping thread a hundred times, and come back to Python in between.
Here threads share every stage (`shared_work_numba`). The bits are those of the kernels called one by one: rows of
norms, panels of products and runs of attention do not depend on how they are dealt out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.decoder_arrays import (
    DOWN,
    GATE_UP,
    INPUT_NORM,
    KEY_NORM,
    MLP_NORM,
    OUTPUT,
    PROJECTION,
    QUERY_NORM,
    Activations,
    Decoder,
    DecoderStep,
)
from outrider_kernels.decoder_instructions import Instructions, attend, cache_of, multiply, new_attention_memory
from outrider_kernels.gated_unit_numba import silu_and_multiply_rows
from outrider_kernels.memory_numba import floats_at, halves_at
from outrider_kernels.number_formats_numba import narrow, widen
from outrider_kernels.rms_norm_numba import add_and_norm_rows, norm_heads, norm_rows
from outrider_kernels.rotary_numba import RotaryOutputs, RotaryTables, rotate_rows
from outrider_kernels.shared_work_numba import Stage, Team, abandon, cycles_now, next_share, take_share

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]
Longs = npt.NDArray[np.int64]

PARTS = ("linears", "output head", "attention", "cache writes", "norms and gated units")
"""Of a pass, as its cycles are counted."""
_LINEARS, _HEAD, _ATTENTION, _CACHE, _NORMS = range(len(PARTS))
_STAGES_OF_LAYER = 9
_OTHER_STAGES = 4
_LEAST_NUMBERS = 2048
"""Numbers that are worth another thread where not much is done with each."""


def num_stages(num_layers: int) -> int:
    """Of a pass."""
    return num_layers * _STAGES_OF_LAYER + _OTHER_STAGES


@compiled(parallel=True, lets_python_run=True)
def run_decoder(
    kind: Instructions, decoder: Decoder, step: DecoderStep, activations: Activations, team: Team, cycles: Longs,
    logits: Floats,
) -> None:  # fmt: skip
    """Write logits [N, V] of a step, and its keys and values to the cache.

    Args:
        kind: instructions that this processor has and the panels are made for.
        decoder: what runs.
        step: its tokens, at least one.
        activations: for at least as many.
        team: its size is the number of threads; counters for `num_stages`, all 0. Where a thread failed, for want of
            memory say, they say so (`was_abandoned`), and what was written is worth nothing.
        cycles: [threads, 8] to which each thread adds its processor's cycles by `PARTS`, waiting for others included.
        logits: [N, V], written.
    """
    for thread in prange(team.size):
        _take_part(kind, decoder, step, activations, team, cycles[thread], logits)


@compiled()
def _take_part(
    kind: Instructions, decoder: Decoder, step: DecoderStep, acts: Activations, team: Team, cycles: Longs,
    logits: Floats,
) -> None:  # fmt: skip
    """A thread's shares of all stages."""
    try:
        _go_through(kind, decoder, step, acts, team, cycles, logits)
    except Exception:
        abandon(team)


@compiled()
def _go_through(
    kind: Instructions, decoder: Decoder, step: DecoderStep, acts: Activations, team: Team, cycles: Longs,
    logits: Floats,
) -> None:  # fmt: skip
    count, num_layers, num_wanted = len(step.token_ids), len(decoder.norms), len(step.wanted)
    memory = new_attention_memory(kind, _most_lines(decoder, step), decoder.head_dim)
    since = cycles_now()
    _embed(team, 0, decoder, step.token_ids, acts)
    since = _spent(cycles, _NORMS, since)
    stage = 1
    for layer in range(num_layers):
        norm, epsilon = decoder.norms[layer], decoder.epsilons[layer]
        if layer > 0:
            _add_and_norm(team, stage, norm[INPUT_NORM], epsilon[INPUT_NORM], count, acts)
            since = _spent(cycles, _NORMS, since)
        _product(team, stage + 1, kind, decoder, layer, PROJECTION, acts.normed[:count], acts.projected[:count])
        since = _spent(cycles, _LINEARS, since)
        _rotate(team, stage + 2, kind, decoder, layer, step, acts)
        since = _spent(cycles, _CACHE, since)
        _attend(team, stage + 3, kind, decoder, layer, step, memory, acts)
        since = _spent(cycles, _ATTENTION, since)
        if layer == num_layers - 1 and num_wanted < count:
            # What follows the last attention is of use to the wanted tokens only.
            count = num_wanted
            _keep(team, stage + _STAGES_OF_LAYER, step.wanted, acts)
        _product(team, stage + 4, kind, decoder, layer, OUTPUT, acts.attended[:count], acts.delta[:count])
        since = _spent(cycles, _LINEARS, since)
        _add_and_norm(team, stage + 5, norm[MLP_NORM], epsilon[MLP_NORM], count, acts)
        since = _spent(cycles, _NORMS, since)
        _product(team, stage + 6, kind, decoder, layer, GATE_UP, acts.normed[:count], acts.gate_up[:count])
        since = _spent(cycles, _LINEARS, since)
        _gate(team, stage + 7, count, acts)
        since = _spent(cycles, _NORMS, since)
        _product(team, stage + 8, kind, decoder, layer, DOWN, acts.gated[:count], acts.delta[:count])
        since = _spent(cycles, _LINEARS, since)
        stage += _STAGES_OF_LAYER
    _add_and_norm(team, stage + 1, decoder.final_norm, decoder.final_epsilon, count, acts)
    since = _spent(cycles, _NORMS, since)
    _multiply_head(team, stage + 2, kind, decoder, acts.normed[:count], logits)
    _spent(cycles, _HEAD, since)


@compiled()
def _spent(cycles: Longs, part: int, since: int) -> int:
    now: int = cycles_now()
    cycles[part] += now - since
    return now


@compiled()
def _most_lines(decoder: Decoder, step: DecoderStep) -> int:
    """Of a run: tokens times query heads of a key-value head."""
    most = 0
    for run in range(len(step.run_starts) - 1):
        most = max(most, step.run_starts[run + 1] - step.run_starts[run])
    return most * (decoder.num_heads // decoder.num_kv_heads)


@compiled()
def _embed(team: Team, stage: int, decoder: Decoder, ids: Longs, acts: Activations) -> None:
    """The residual stream of the first layer, and its norm."""
    width = decoder.embedding.shape[1]
    weight, epsilon = halves_at(decoder.norms[0, INPUT_NORM], width), decoder.epsilons[0, INPUT_NORM]
    work = Stage(team, stage, len(ids), 1 + _LEAST_NUMBERS // width)
    share = take_share(work)
    while share.is_some:
        for i in range(share.first, share.end):
            acts.hidden[i] = decoder.embedding[ids[i]]
        norm_rows(acts.hidden, weight, epsilon, acts.normed, share.first, share.end)
        share = next_share(work)


@compiled()
def _add_and_norm(team: Team, stage: int, weight_at: int, epsilon: np.float32, count: int, acts: Activations) -> None:
    width = acts.hidden.shape[1]
    weight = halves_at(weight_at, width)
    work = Stage(team, stage, count, 1 + _LEAST_NUMBERS // width)
    share = take_share(work)
    while share.is_some:
        add_and_norm_rows(acts.hidden, acts.delta, weight, epsilon, acts.normed, share.first, share.end)
        share = next_share(work)


@compiled()
def _product(
    team: Team, stage: int, kind: Instructions, decoder: Decoder, layer: int, which: int, rows: Halves, out: Halves
) -> None:
    width = kind.panel_width
    num_panels = (out.shape[1] + width - 1) // width
    panels = halves_at(decoder.panels[layer, which], (num_panels, rows.shape[1] // 2, 2 * width))
    bias = floats_at(decoder.biases[layer, which], num_panels * width)
    work = Stage(team, stage, num_panels, 1)
    share = take_share(work)
    while share.is_some:
        multiply(kind, rows, panels, bias, out, share.first, share.end)
        share = next_share(work)


@compiled()
def _rotate(
    team: Team, stage: int, kind: Instructions, decoder: Decoder, layer: int, step: DecoderStep, acts: Activations
) -> None:
    """Norms of heads, where a model has them, and rotation; keys and values go to the cache."""
    norms, epsilons = decoder.norms[layer], decoder.epsilons[layer]
    num_heads, both = decoder.num_heads, decoder.num_heads + decoder.num_kv_heads
    cache = cache_of(kind, decoder, layer)
    rotary, outputs = (
        RotaryTables(decoder.cosines, decoder.sines),
        RotaryOutputs(acts.queries, cache.keys, cache.values),
    )
    work = Stage(team, stage, len(step.positions), 1 + _LEAST_NUMBERS // acts.projected.shape[1])
    share = take_share(work)
    while share.is_some:
        if norms[QUERY_NORM] != 0:
            weight = halves_at(norms[QUERY_NORM], decoder.head_dim)
            norm_heads(acts.projected, 0, num_heads, weight, epsilons[QUERY_NORM], share.first, share.end)
            weight = halves_at(norms[KEY_NORM], decoder.head_dim)
            norm_heads(acts.projected, num_heads, both, weight, epsilons[KEY_NORM], share.first, share.end)
        rotate_rows(acts.projected, rotary, step.positions, step.slots, outputs, share.first, share.end)
        share = next_share(work)


@compiled()
def _attend(
    team: Team, stage: int, kind: Instructions, decoder: Decoder, layer: int, step: DecoderStep, memory: Any,
    acts: Activations,
) -> None:  # fmt: skip
    num_kv_heads, size = decoder.num_kv_heads, decoder.head_dim
    group = decoder.num_heads // num_kv_heads
    work = Stage(team, stage, (len(step.run_starts) - 1) * num_kv_heads, 1)
    share = take_share(work)
    while share.is_some:
        for task in range(share.first, share.end):
            run, kv_head = task // num_kv_heads, task % num_kv_heads
            attend(kind, memory, acts.queries, decoder, step, layer, run, kv_head, acts.attended_heads)
            for token in range(step.run_starts[run], step.run_starts[run + 1]):
                for head in range(kv_head * group, kv_head * group + group):
                    exact, near = acts.attended_heads[token, head], acts.attended[token, head * size :]
                    for x in range(size):
                        near[x] = narrow(exact[x], near)
        share = next_share(work)


@compiled()
def _keep(team: Team, stage: int, wanted: Longs, acts: Activations) -> None:
    """Move the wanted rows to the front."""
    work = Stage(team, stage, 1, 1)
    share = take_share(work)
    while share.is_some:
        for i in range(share.first, share.end * len(wanted)):
            acts.hidden[i] = acts.hidden[wanted[i]]
            acts.attended[i] = acts.attended[wanted[i]]
        share = next_share(work)


@compiled()
def _gate(team: Team, stage: int, count: int, acts: Activations) -> None:
    work = Stage(team, stage, count, 1 + _LEAST_NUMBERS // acts.gated.shape[1])
    share = take_share(work)
    while share.is_some:
        silu_and_multiply_rows(acts.gate_up, acts.gated, share.first, share.end)
        share = next_share(work)


@compiled()
def _multiply_head(team: Team, stage: int, kind: Instructions, decoder: Decoder, rows: Halves, logits: Floats) -> None:
    """Rounded to bfloat16, as the model's own head rounds, then widened."""
    width = kind.panel_width
    count, vocab_size = logits.shape
    num_panels = (vocab_size + width - 1) // width
    panels = halves_at(decoder.head, (num_panels, rows.shape[1] // 2, 2 * width))
    bias = floats_at(decoder.head_bias, num_panels * width)
    work = Stage(team, stage, num_panels, 1)
    share = take_share(work)
    while share.is_some:
        start, after = share.first * width, min(share.end * width, vocab_size)
        near = np.empty((count, after - start), np.uint16)
        multiply(kind, rows, panels[share.first : share.end], bias[start:], near, 0, share.end - share.first)
        for i in range(count):
            own, exact = near[i], logits[i, start:after]
            for x in range(after - start):
                exact[x] = widen(own[x])
        share = next_share(work)
