"""Every key of vLLM's ``speculative_config``, with its documented default and bounds.

Known keys are told apart from misspelt ones by this table; whether we can do what a key asks for is decided elsewhere.
Both generations of spelling are here. Source: vLLM's speculative decoding guide and its SpeculativeConfig.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from outrider_runtime.settings import Settings

METHODS = (
    "ngram",
    "ngram_gpu",
    "suffix",
    "draft_model",
    "mtp",
    "eagle",
    "eagle3",
    "dflash",
    "dspark",
    "medusa",
    "mlp_speculator",
    "extract_hidden_states",
    "custom_class",
)
"""Every method of vLLM, whether or not there are draft workers for it here."""

REJECTION_METHODS = ("coupled", "strict", "standard", "probabilistic", "block", "synthetic")
"""Ours, and those of both generations of vLLM."""

SYNTHETIC_KEYS = ("synthetic_acceptance_rate", "synthetic_acceptance_rates", "synthetic_acceptance_length")
"""How much to pretend: one of them, and only with `synthetic`."""

_Rate = Annotated[float, Field(ge=0, le=1)]


class VllmSpeculativeConfig(Settings):
    """The keys and their documented defaults."""

    method: str | None = None
    """Speculation method; absent, it is inferred from `model`."""
    model: str | None = None
    """Draft model, head, or path of a custom class."""
    num_speculative_tokens: int | None = Field(default=None, ge=1)
    """Proposed tokens per round."""
    draft_tensor_parallel_size: int | None = Field(default=None, ge=1)
    """Ranks of the draft model."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Longest context of the drafter."""
    parallel_drafting: bool = False
    """Draft all tokens in one pass (PARD)."""
    rejection_sample_method: str | None = None
    """Acceptance rule."""
    draft_sample_method: str | None = None
    """How the draft model samples: greedy or probabilistic; absent, vLLM takes greedy."""
    synthetic_acceptance_rate: _Rate | None = None
    """Average acceptance to pretend."""
    synthetic_acceptance_rates: list[_Rate] | None = None
    """Acceptance to pretend, by position."""
    synthetic_acceptance_length: float | None = Field(default=None, ge=1)
    """Mean acceptance length to pretend."""
    num_speculative_tokens_per_batch_size: list[list[int]] | None = None
    """Depth by batch size: ranges of [first, last, tokens]."""
    enable_adaptive_verification: bool = False
    """Verify only proposals that are likely to be accepted."""
    use_heterogeneous_vocab: bool = False
    """Draft with another vocabulary (token-level intersection)."""
    use_local_argmax_reduction: bool = False
    """Reduce the draft's arg-max locally on each rank."""
    prompt_lookup_min: int | None = Field(default=None, ge=1)
    """Shortest n-gram; mirrors prompt_lookup_max, or 5."""
    prompt_lookup_max: int | None = Field(default=None, ge=1)
    """Longest n-gram; mirrors prompt_lookup_min, or 5."""
    suffix_decoding_max_tree_depth: int = Field(default=24, ge=1)
    """Match and proposal together at most."""
    suffix_decoding_max_cached_requests: int = Field(default=10_000, ge=0)
    """Requests in the shared tree; 0 turns it off."""
    suffix_decoding_max_spec_factor: float = Field(default=1.0, ge=0)
    """Proposed tokens per matched token at most."""
    suffix_decoding_min_token_prob: _Rate = 0.1
    """Least estimated probability of a proposed token."""
    suffix_decoding_corpus_tokens: int | None = Field(default=None, ge=0)
    """Tokens kept in the shared corpus."""
    quantization: str | None = None
    """Quantisation of the draft model."""
    revision: str | None = None
    """Hub revision of the draft model."""
    code_revision: str | None = None
    """Hub revision of the draft model's code."""
    enforce_eager: bool | None = None
    """Run the draft model without graphs."""
    moe_backend: str | None = None
    """Expert kernels of the draft model."""
    attention_backend: str | None = None
    """Attention kernels of the draft model."""
    kv_cache_dtype: str | None = None
    """Cache type of the draft model."""
    disable_padded_drafter_batch: bool = False
    """Do not pad the drafter's batch."""
    disable_eagle_block_drop: bool = False
    """Keep the last cache block of EAGLE."""
    index_share_for_mtp_iteration: bool | None = None
    """Share indices between MTP iterations."""
    dspark_draft_topk: int | None = Field(default=None, ge=1)
    """Candidates per position of DSpark."""


HINTS = {
    "tensor_parallel_size": "Use draft_tensor_parallel_size.",
    "adaptive_verification": "Did you mean enable_adaptive_verification?",
    "acceptance_method": "Did you mean rejection_sample_method?",
    "speculative_model": "Did you mean model?",
    "num_lookahead_tokens": "Did you mean num_speculative_tokens?",
    "temperature": "That is a sampling parameter: it belongs in requests.",
    "top_p": "That is a sampling parameter: it belongs in requests.",
    "top_k": "That is a sampling parameter: it belongs in requests.",
    "seed": "That is a sampling parameter: it belongs in requests.",
    **dict.fromkeys(
        ("target_model_config", "draft_model_config", "target_parallel_config", "draft_parallel_config"),
        "vLLM fills this in itself; users do not set it.",
    ),
    "draft_load_config": "Weights are loaded from safetensors only; there is nothing to configure.",
}
"""What to say about keys that people try and that do not exist."""


def asks_for_nothing(key: str, value: object) -> bool:
    """Whether a key of the table is written out with its documented default."""
    return bool(value == VllmSpeculativeConfig.model_fields[key].default)
