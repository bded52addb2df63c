"""The forms in which `verification`, `laws` and `logprobs` start their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
_BLOCK, _SPAN, _ROOM = ("BLOCK", _TILING.block), ("SPAN", _TILING.span), ("ROOM", _TILING.room)
_PART_COUNT, _SPAN_COUNT = ("PARTS", 4), ("SPANS", 4096)
_SUM_BLOCK = ("BLOCK", _TILING.sum_block)


class _Form(NamedTuple):
    """What sets the forms of a kernel that reads logits apart."""

    name: str
    pointer: str
    edited: bool
    num_parts: int = 4
    """`PARTS`, of kernels that have it: in a batch that keeps the GPU busy."""


_FORMS = (
    _Form("bfloat16", "*bf16", False),
    _Form("bfloat16 edited", "*bf16", True),
    _Form("float32", "*fp32", False),
    _Form("float32 edited", "*fp32", True),
)
_HALF_FORMS = (_Form("float16", "*fp16", False),)
"""Of the kernel that reads everything; in the others it differs from bfloat16 by the same one conversion."""
_MANY_PARTS = (_Form("bfloat16 64 parts", "*bf16", False, 64), _Form("float32 edited 64 parts", "*fp32", True, 64))
"""The most that `Tiling.parts_of` gives, in the lightest and the heaviest form; the powers of two below lie between."""


def _over_logits(
    kernel: Any,
    arguments: Mapping[str, str | tuple[str, ...]],
    constants: Mapping[str, int],
    num_warps: int,
    hot: bool,
    more_forms: tuple[_Form, ...] = (),
) -> list[Variant]:
    """A kernel that reads logits, in every form; `arguments` come after the table and the edits."""
    found = []
    for form in _FORMS + more_forms + (_MANY_PARTS if "PARTS" in constants else ()):
        signature = {"table": _table(form.pointer), "edits": _EDITS if form.edited else _NO_EDITS}
        everything = {**constants, **_parts_of(form, constants), "EDITED": form.edited}
        found.append(
            Variant(
                name=f"{kernel.__name__} {form.name}",
                kernel=kernel,
                signature={**signature, **arguments, **dict.fromkeys(everything, "constexpr")},
                constants=everything,
                num_warps=num_warps,
                hot=hot,
                divisible=_SIZES,
            )
        )
    return found


def _over_raw_logits(
    kernel: Any,
    arguments: Mapping[str, str | tuple[str, ...]],
    constants: Mapping[str, int],
    num_warps: int,
    hot: bool,
) -> list[Variant]:
    """A kernel that reads logits as the model gave them; `arguments` come after the table."""
    return [
        Variant(
            name=f"{kernel.__name__} {form.name}",
            kernel=kernel,
            signature={"table": _table(form.pointer), **arguments, **dict.fromkeys(constants, "constexpr")},
            constants={**constants, **_parts_of(form, constants)},
            num_warps=num_warps,
            hot=hot,
            divisible=_SIZES,
        )
        for form in _FORMS + (_MANY_PARTS if "PARTS" in constants else ())
        if not form.edited
    ]


def _table(pointer: str) -> tables.LogitTable:
    return tables.LogitTable(pointer, "i32", "i32")


def _parts_of(form: _Form, constants: Mapping[str, int]) -> Mapping[str, int]:
    return {"PARTS": form.num_parts} if "PARTS" in constants else {}


_SETTINGS = {"settings": "*i64"}
_SHARED: Mapping[str, str | tuple[str, ...]] = {**_SETTINGS, "parts": _PARTS}

VARIANTS = (
    *_over_logits(scan, {**_SHARED, "blocks_a_part": "i32"}, dict((_BLOCK, _SPAN)), 4, True, _HALF_FORMS),
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
    *(
        Variant(
            name=name,
            kernel=finish,
            signature={
                **_SETTINGS,
                "candidates": _CANDIDATES,
                "num_parts": "i32",
                "tokens": "*i32",
                "PARTS": "constexpr",
                "ROOM": "constexpr",
            },
            constants={"PARTS": num_parts, "ROOM": _TILING.room},
            num_warps=8,
            hot=True,
        )
        for name, num_parts in (("finish", 4), ("finish 64 parts", 64))
    ),
    Variant(
        name="compare",
        kernel=compare,
        signature=dict.fromkeys(("starts", "proposed", "tokens", "accepted_counts", "emitted"), "*i32"),
        constants={},
        hot=True,
        unaligned=frozenset({"emitted"}),
    ),
    *_over_raw_logits(
        edit,
        {"edits": _EDITS, **_SETTINGS, "rules": _RULES, "starts": "*i32", "proposed": "*i32"},
        {"BLOCK": 256},
        4,
        True,
    ),
    *_over_raw_logits(
        top_logprobs,
        {
            "parts": _PARTS,
            "candidates": _CANDIDATES,
            "chosen": "*i32",
            "chosen_logprobs": "*fp32",
            "top_ids": "*i32",
            "top_values": "*fp32",
            "num_top": "i32",
        },
        dict((_PART_COUNT, _SPAN_COUNT, _SPAN)),
        8,
        False,
    ),
    *_over_raw_logits(
        count_likelier,
        {"candidates": _CANDIDATES, "chosen": "*i32", "likelier": "*i32", "blocks_a_part": "i32"},
        dict((_PART_COUNT, _BLOCK)),
        4,
        False,
    ),
)
