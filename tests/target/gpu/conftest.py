"""Interpreted kernels multiply as a GPU does, and do not prepare the language at every call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from outrider_doubles.interpreted_language import language_replaced_once
from outrider_doubles.interpreted_products import multiply_rows_alike


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    multiply_rows_alike(monkeypatch)
    with language_replaced_once():
        yield
