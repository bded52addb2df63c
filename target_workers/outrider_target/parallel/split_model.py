"""A model of which this rank reads and holds its own part only.

transformers' modules run it unchanged: they see fewer heads and a narrower feed-forward.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.head_counts import head_counts
from outrider_runtime.models.loading import ModelDtype
from outrider_runtime.models.part_loading import empty_causal_lm, fill_weights
from outrider_runtime.models.shard import Shard, even_shard
from outrider_target.parallel.plan import Style, read_plan
from outrider_target.parallel.ranks import Ranks
from outrider_target.parallel.split_linear import GatheredColumns, GatheredHead, SummedRows

_ROWS = (Style.ROWS, Style.ROWS_OF_WHOLE)


def load_split_model(folder: Path, dtype: ModelDtype, ranks: Ranks) -> PreTrainedModel:
    """This rank's part of the model in `folder`, on the CPU, in evaluation mode.

    It runs when all ranks run theirs; logits come out on rank 0.

    Raises:
        ModelRefused: a folder that we do not load, or a model that cannot be split among so many.
    """
    model = empty_causal_lm(folder, dtype)
    refusal = head_counts(model.config.get_text_config().to_dict()).refusal(ranks.size)
    if refusal is not None:
        raise ModelRefused(f"{type(model).__name__}: {refusal}")
    plan = read_plan(model)
    shards: dict[str, Shard] = {}
    parameters: dict[str, Shard] = {}
    for name, style in plan.items():
        shards[name] = _shard(model, name, style, ranks)
        parameters |= _narrow(model, name, shards[name], keeps_bias=style not in _ROWS or ranks.rank == 0)
    fill_weights(model, folder, parameters)
    for name, style in plan.items():
        _join(model, name, style, shards[name], ranks)
    return model.eval().requires_grad_(False)


def _shard(model: PreTrainedModel, name: str, style: Style, ranks: Ranks) -> Shard:
    linear: Any = model.get_submodule(name)
    dim, total = (1, linear.in_features) if style in _ROWS else (0, linear.out_features)
    head_dim = getattr(model.get_submodule(name.rpartition(".")[0]), "head_dim", None)
    if head_dim is None or style in (Style.COLUMNS_GATHERED, Style.ROWS_OF_WHOLE):
        return even_shard(dim, total, ranks.rank, ranks.size)
    if total % (head_dim * ranks.size):
        heads = f"{total / head_dim:g} heads of {head_dim}"
        raise ModelRefused(f"{type(model).__name__}: {name}: {heads} do not divide among {ranks.size} ranks")
    return even_shard(dim, total, ranks.rank, ranks.size, unit=head_dim)


def _narrow(model: PreTrainedModel, name: str, shard: Shard, keeps_bias: bool) -> dict[str, Shard]:
    """Replace a linear by one of the shard's width, still without memory. Returns the shards of its parameters."""
    linear: Any = model.get_submodule(name)
    has_bias = linear.bias is not None and keeps_bias
    inputs, outputs = (shard.width, linear.out_features) if shard.dim else (linear.in_features, shard.width)
    model.set_submodule(name, nn.Linear(inputs, outputs, has_bias, device="meta", dtype=linear.weight.dtype))
    is_cut_too = has_bias and shard.dim == 0
    return {f"{name}.weight": shard} | ({f"{name}.bias": shard} if is_cut_too else {})


def _join(model: PreTrainedModel, name: str, style: Style, shard: Shard, ranks: Ranks) -> None:
    """Let a linear exchange with the other ranks what its style says."""
    part: Any = model.get_submodule(name)
    if style in _ROWS:
        own = None if style is Style.ROWS else Shard(-1, shard.total, shard.start, shard.end, shard.width)
        model.set_submodule(name, SummedRows(part, ranks, own))
    elif style is Style.COLUMNS_GATHERED:
        kind = GatheredHead if part is model.get_output_embeddings() else GatheredColumns
        model.set_submodule(name, kind(part, ranks, shard.total))
