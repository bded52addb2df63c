"""Where keys belong: what to say of one that exists, but elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import BaseModel

from outrider_cluster.config.finding import UNKNOWN_KEY, Finding
from outrider_cluster.config.settings_check import model_in

_MOST_PLACES = 2
"""A key that many mappings have says nothing about what was meant."""


def with_place(finding: Finding, sections: Sequence[tuple[str, type[BaseModel]]]) -> Finding:
    """`finding`; an unknown key that belongs elsewhere is told where, which goes before what it looks like.

    Args:
        finding: of any kind.
        sections: what there is, by name; a name may be there more than once.
    """
    is_guess = finding.suggestion is None or finding.suggestion.startswith("Did you mean")
    if finding.problem != UNKNOWN_KEY or not is_guess:
        return finding
    key = finding.path[-1]
    places = list(dict.fromkeys(place for name, model in sections for place in _places(key, name, model)))
    if not 0 < len(places) <= _MOST_PLACES:
        return finding
    return replace(finding, suggestion=f"It belongs under {' or '.join(places)}.")


def _places(key: str | int, name: str, model: type[BaseModel]) -> Iterator[str]:
    if key in model.model_fields:
        yield name
    for inner, field in model.model_fields.items():
        nested = model_in(field.annotation)
        if nested is not None and key in nested.model_fields:
            yield f"{name}.{inner}"
