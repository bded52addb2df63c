"""A last check before serving: our forward pass says what the model's own definition says.

It catches what neither configuration nor the survey of attention shows: position biases added elsewhere, scores that a
model changes after our hook, weights that were replaced wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused
from outrider_target.forward import Forward, RaggedBatch

_MAX_TOKENS = 40
_RELATIVE_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.3}
"""Root mean square difference over spread of the logits. Rounding gives about 1e-6 and 0.05, unrelated logits 1.4."""


@dataclass(frozen=True, slots=True)
class OwnLogits:
    """What a model computes before we change it."""

    token_ids: npt.NDArray[np.int64]
    """[T]"""
    logits: torch.Tensor
    """[T, V] float32"""
    name: str
    dtype: torch.dtype

    @classmethod
    def of(cls, model: PreTrainedModel, max_model_len: int) -> OwnLogits:
        """Logits of a fixed pseudo-random text."""
        vocab_size = model.get_input_embeddings().weight.shape[0]
        token_ids = np.random.default_rng(0).integers(0, vocab_size, min(_MAX_TOKENS, max_model_len))
        inputs = torch.from_numpy(token_ids)[None]
        with torch.inference_mode():
            logits = model(input_ids=inputs, attention_mask=torch.ones_like(inputs), use_cache=False).logits[0].float()
        return cls(token_ids, logits, type(model).__name__, model.dtype)


def check_agreement(forward: Forward, own: OwnLogits) -> None:
    """Run the same text through `forward`. Leaves it with a small cache.

    Raises:
        ModelRefused: the logits differ by more than rounding.
    """
    num_tokens = len(own.token_ids)
    num_blocks = -(-num_tokens // forward.cache_shape.block_size)
    forward.allocate_cache(num_blocks)
    ours = forward.run(
        RaggedBatch(
            token_ids=own.token_ids,
            positions=np.arange(num_tokens, dtype=np.int32),
            row_starts=np.array([0, num_tokens], np.int32),
            block_tables=np.arange(num_blocks, dtype=np.int32)[None],
            logit_indices=np.arange(num_tokens, dtype=np.int64),
        )
    )
    difference = float((ours.cpu() - own.logits).square().mean().sqrt())
    allowed = _RELATIVE_TOLERANCE[own.dtype] * float(own.logits.std())
    if not difference <= allowed:
        raise ModelRefused(
            f"{own.name}: our attention does not reproduce the model: logits differ by {difference:.3g} "
            f"on average, rounding explains {allowed:.3g}"
        )
