"""The forms in which `verification`, `laws` and `logprobs` start their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.compare_triton import compare
from outrider_kernels.triton_twins.edit_triton import edit
from outrider_kernels.triton_twins.finish_triton import finish
from outrider_kernels.triton_twins.gather_triton import add_up, gather
from outrider_kernels.triton_twins.laws_triton import fill_laws, find_cuts
from outrider_kernels.triton_twins.logprobs_triton import count_likelier, top_logprobs
from outrider_kernels.triton_twins.plan_triton import plan
from outrider_kernels.triton_twins.registry import Variant
from outrider_kernels.triton_twins.scan_triton import scan
from outrider_kernels.triton_twins.search_triton import search
from outrider_kernels.triton_twins.tiling import Tiling

_TILING = Tiling()
_EDITS = tables.Edits("*i32", "*fp32", "*i32", "*i32", "*i32", "*i32", "*i32", "i32", "i32")
_NO_EDITS = tables.Edits("*i64", "*i64", "*i64", "*i64", "*i64", "*i64", "*i64", "i32", "i32")
_PARTS = tables.Parts("*fp32", "*i32", "*fp64", "*i32", "*i32", "*fp32", "i32", "i32")
_CANDIDATES = tables.Candidates("*fp32", "*i32", "*i64", "*i64", "*i32")
_RULES = tables.EditRules("*fp64", "*i32", "*i32", "*fp64", "*i32", "*i32", "*i32", "*i32", "*i32", "*i32")
_SIZES = frozenset({"table.stride", "table.size"})
_FORMS = (("*bf16", "bfloat16", False), ("*bf16", "bfloat16 edited", True))
_MORE_FORMS = (("*fp16", "float16", False), ("*fp32", "float32", False))
"""Of the kernel that reads everything; in the others they differ by one conversion."""
_BLOCK, _SPAN, _ROOM = ("BLOCK", _TILING.block), ("SPAN", _TILING.span), ("ROOM", _TILING.room)
_PART_COUNT, _SPAN_COUNT = ("PARTS", 4), ("SPANS", 4096)
_SUM_BLOCK = ("BLOCK", _TILING.sum_block)


def _over_logits(
    kernel: Any,
    arguments: Mapping[str, str | tuple[str, ...]],
    constants: Mapping[str, int],
    num_warps: int,
    hot: bool,
    forms: tuple[tuple[str, str, bool], ...] = _FORMS,
) -> list[Variant]:
    """A kernel that reads logits, in every form; `arguments` come after the table and the edits."""
    found = []
    for kind, name, edited in forms:
        signature = {"table": tables.LogitTable(kind, "i32", "i32"), "edits": _EDITS if edited else _NO_EDITS}
        everything = {**constants, "EDITED": edited}
        found.append(
            Variant(
                name=f"{kernel.__name__} {name}",
                kernel=kernel,
                signature={**signature, **arguments, **dict.fromkeys(everything, "constexpr")},
                constants=everything,
                num_warps=num_warps,
                hot=hot,
                divisible=_SIZES,
            )
        )
    return found


_SETTINGS = {"settings": "*i64"}
_SHARED: Mapping[str, str | tuple[str, ...]] = {**_SETTINGS, "parts": _PARTS}

VARIANTS = (
    *_over_logits(scan, {**_SHARED, "blocks_a_part": "i32"}, dict((_BLOCK, _SPAN)), 4, True, _FORMS + _MORE_FORMS),
    *_over_logits(
        plan,
        {**_SHARED, "candidates": _CANDIDATES, "tokens": "*i32"},
        dict((_PART_COUNT, _SPAN_COUNT, _BLOCK, _SPAN)),
        4,
        True,
    ),
    *_over_logits(
        add_up, {**_SETTINGS, "candidates": _CANDIDATES, "blocks_a_part": "i32"}, dict((_SUM_BLOCK,)), 8, True
    ),
    *_over_logits(
        gather,
        {**_SHARED, "candidates": _CANDIDATES, "blocks_a_part": "i32"},
        dict((_BLOCK, _SPAN, _PART_COUNT, _ROOM)),
        4,
        True,
    ),
    *_over_logits(
        search,
        {**_SETTINGS, "candidates": _CANDIDATES, "num_parts": "i32", "tokens": "*i32"},
        dict((_BLOCK, _PART_COUNT, _ROOM)),
        8,
        False,
    ),
    *_over_logits(
        find_cuts,
        {**_SETTINGS, "candidates": _CANDIDATES, "num_parts": "i32", "tokens": "*i32", "cuts": "*i64"},
        dict((_BLOCK, _PART_COUNT, _ROOM)),
        8,
        True,
    ),
    *_over_logits(
        fill_laws,
        {
            **_SETTINGS,
            "candidates": _CANDIDATES,
            **dict.fromkeys(("cuts", "law_masses", "part_totals"), "*i64"),
            "blocks_a_part": "i32",
        },
        dict((_BLOCK,)),
        4,
        True,
    ),
    Variant(
        name="finish",
        kernel=finish,
        signature={
            **_SETTINGS,
            "candidates": _CANDIDATES,
            "num_parts": "i32",
            "tokens": "*i32",
            "PARTS": "constexpr",
            "ROOM": "constexpr",
        },
        constants=dict((_PART_COUNT, _ROOM)),
        num_warps=8,
        hot=True,
    ),
    Variant(
        name="compare",
        kernel=compare,
        signature=dict.fromkeys(("starts", "proposed", "tokens", "accepted_counts", "emitted"), "*i32"),
        constants={},
        hot=True,
        unaligned=frozenset({"emitted"}),
    ),
    Variant(
        name="edit bfloat16",
        kernel=edit,
        signature={
            "table": tables.LogitTable("*bf16", "i32", "i32"),
            "edits": _EDITS,
            **_SETTINGS,
            "rules": _RULES,
            "starts": "*i32",
            "proposed": "*i32",
            "BLOCK": "constexpr",
        },
        constants={"BLOCK": 256},
        hot=True,
        divisible=_SIZES,
    ),
    Variant(
        name="top_logprobs bfloat16",
        kernel=top_logprobs,
        signature={
            "table": tables.LogitTable("*bf16", "i32", "i32"),
            "parts": _PARTS,
            "candidates": _CANDIDATES,
            "chosen": "*i32",
            "chosen_logprobs": "*fp32",
            "top_ids": "*i32",
            "top_values": "*fp32",
            "num_top": "i32",
            **dict.fromkeys(("PARTS", "SPANS", "SPAN"), "constexpr"),
        },
        constants=dict((_PART_COUNT, _SPAN_COUNT, _SPAN)),
        num_warps=8,
        divisible=_SIZES,
    ),
    Variant(
        name="count_likelier bfloat16",
        kernel=count_likelier,
        signature={
            "table": tables.LogitTable("*bf16", "i32", "i32"),
            "candidates": _CANDIDATES,
            "chosen": "*i32",
            "likelier": "*i32",
            "blocks_a_part": "i32",
            **dict.fromkeys(("PARTS", "BLOCK"), "constexpr"),
        },
        constants=dict((_PART_COUNT, _BLOCK)),
        divisible=_SIZES,
    ),
)
