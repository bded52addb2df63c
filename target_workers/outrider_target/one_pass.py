"""Steps of a lean decoder as one call of compiled code each: bfloat16 on one rank, with instructions made for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from numba import get_num_threads

from outrider_kernels.attention_tiles_numba import LINES
from outrider_kernels.decoder_arrays import Activations, Decoder, DecoderStep, new_activations
from outrider_kernels.decoder_instructions import Instructions, instructions_for
from outrider_kernels.decoder_pass_numba import PARTS, num_stages, run_decoder
from outrider_kernels.key_value_cache_numba import fits_tiles
from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_kernels.panel_product import PanelProduct
from outrider_kernels.rotary_numba import RotaryTables
from outrider_kernels.shared_work_numba import Team, cycles_per_s, new_counters, was_abandoned
from outrider_target.attention_survey import SurveyedLayer
from outrider_target.forward import RaggedBatch
from outrider_target.lean_weights import LeanLayer, LeanLinear, LeanNorm, LeanWeights
from outrider_target.paged_cache import PagedCache, StepTables, step_tables

_LONGEST_RUN = 16
_TASKS_PER_THREAD = 2
_CYCLE_COLUMNS = 8


class OnePass:
    """Runs whole steps.

    Args:
        kind: of instructions, see `instructions_of`.
        weights: of the model.
        surveyed: how each layer attends.
        rotary: reaches to the longest sequence.
        cache: of the model.
    """

    def __init__(
        self,
        kind: Instructions,
        weights: LeanWeights,
        surveyed: Sequence[SurveyedLayer],
        rotary: RotaryTables,
        cache: PagedCache,
    ) -> None:
        self._kind = kind
        self._weights = weights
        self._cache = cache
        self._decoder = _decoder(weights, surveyed, rotary, cache)
        self._intermediate = weights.layers[0].down.num_inputs
        self._counters = new_counters(num_stages(len(weights.layers)))
        self._activations = new_activations(self._decoder, self._intermediate, 1)
        self._cycles = np.zeros((get_num_threads(), _CYCLE_COLUMNS), np.int64)

    def spent_s(self) -> dict[str, float]:
        """Seconds in passes so far, by part, as the first share of the loop over threads counts them."""
        return {part: cycles / cycles_per_s() for part, cycles in zip(PARTS, self._cycles[0].tolist(), strict=False)}

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step. Returns logits [N, V] float32.

        Raises:
            IndexError: a token id that the embedding does not have.
            MemoryError: a thread got none for its scratch. (Where the very last bytes are gone, libraries end the
                process before.)
        """
        ids, threads = batch.token_ids, get_num_threads()
        if ids.min() < 0 or ids.max() >= len(self._decoder.embedding):
            raise IndexError(f"expected ids in 0 to {len(self._decoder.embedding) - 1}, given {ids.min()}-{ids.max()}")
        if threads > len(self._cycles):
            counted, self._cycles = self._cycles, np.zeros((threads, _CYCLE_COLUMNS), np.int64)
            self._cycles[: len(counted)] = counted
        logits = np.empty((len(batch.logit_indices), self._weights.vocab_size), np.float32)
        self._counters.fill(0)
        step, team = self._step(batch, step_tables(batch), threads), Team(self._counters, threads)
        run_decoder(self._kind, self._decoder, step, self._room(len(ids)), team, self._cycles, logits)
        if was_abandoned(self._counters):
            raise MemoryError("a thread of the decoder pass failed, for want of memory most likely")
        return torch.from_numpy(logits)

    def _step(self, batch: RaggedBatch, tables: StepTables, threads: int) -> DecoderStep:
        num_heads, num_kv_heads = self._decoder.num_heads, self._decoder.num_kv_heads
        most = len(batch.token_ids) * num_kv_heads // (_TASKS_PER_THREAD * threads)
        least = LINES * num_kv_heads // num_heads
        return DecoderStep(
            token_ids=batch.token_ids,
            positions=tables.positions,
            slots=tables.slots,
            token_rows=tables.token_rows,
            block_tables=tables.block_tables,
            run_starts=_run_starts(batch.row_starts, max(1, least, min(most, _LONGEST_RUN))),
            wanted=batch.logit_indices,
        )

    def _room(self, num_tokens: int) -> Activations:
        if num_tokens > len(self._activations.hidden):
            capacity = 1 << (num_tokens - 1).bit_length()
            self._activations = new_activations(self._decoder, self._intermediate, capacity)
        return self._activations


def instructions_of(weights: LeanWeights, surveyed: SurveyedLayer) -> Instructions | None:
    """With which a pass runs over these weights and layers that attend like this one; None if it cannot."""
    products = [linear.multiply for layer in weights.layers for linear in _linears(layer)] + [weights.head.multiply]
    kernels = {product.kernel if isinstance(product, PanelProduct) else None for product in products}
    kernel = kernels.pop()
    if kernels or kernel is None or weights.embedding.dtype != torch.bfloat16:
        return None
    return instructions_for(kernel, fits_tiles(np.uint16, surveyed.head_dim))


def _run_starts(row_starts: npt.NDArray[np.int32], longest: int) -> npt.NDArray[np.int32]:
    """[R + 1] where rows begin, and within rows every `longest` tokens."""
    rows: list[int] = row_starts.tolist()
    starts = [at for start, end in pairwise(rows) for at in range(start, end, longest)]
    return np.array([*starts, rows[-1]], np.int32)


def _decoder(
    weights: LeanWeights, surveyed: Sequence[SurveyedLayer], rotary: RotaryTables, cache: PagedCache
) -> Decoder:
    layers, first, head = weights.layers, surveyed[0], _panels(weights.head)
    panels = [[_panels(linear) for linear in _linears(layer)] for layer in layers]
    return Decoder(
        num_heads=first.num_heads,
        num_kv_heads=first.num_kv_heads,
        head_dim=first.head_dim,
        num_blocks=len(cache.layers[0].keys),
        embedding=numbers_of(weights.embedding),  # type: ignore[arg-type]
        norms=np.array([[_address(norm.weight) if norm else 0 for norm in _norms(layer)] for layer in layers]),
        epsilons=np.array([[norm.epsilon if norm else 0 for norm in _norms(layer)] for layer in layers], np.float32),
        panels=np.array([[_address(product.panels) for product in of_layer] for of_layer in panels]),
        biases=np.array([[_address(product.bias) for product in of_layer] for of_layer in panels]),
        scales=np.array([layer.scaling for layer in surveyed], np.float32),
        windows=np.array([layer.sliding_window or 0 for layer in surveyed]),
        caches=np.array([[_address(keys), _address(values)] for keys, values in cache.layers]),
        cosines=rotary.cosines,
        sines=rotary.sines,
        final_norm=_address(weights.final_norm.weight),
        final_epsilon=np.float32(weights.final_norm.epsilon),
        head=_address(head.panels),
        head_bias=_address(head.bias),
    )


def _linears(layer: LeanLayer) -> tuple[LeanLinear, ...]:
    """In the order of `Decoder.panels`."""
    return layer.projection, layer.output, layer.gate_up, layer.down


def _norms(layer: LeanLayer) -> tuple[LeanNorm | None, ...]:
    """In the order of `Decoder.norms`."""
    return layer.input_norm, layer.query_norm, layer.key_norm, layer.mlp_norm


def _panels(linear: LeanLinear) -> PanelProduct:
    assert isinstance(linear.multiply, PanelProduct)
    return linear.multiply


def _address(array: Numbers) -> int:
    return array.ctypes.data
