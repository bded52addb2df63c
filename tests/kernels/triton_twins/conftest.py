"""Interpreted kernels multiply as a GPU does."""

from __future__ import annotations

import pytest
from outrider_doubles.interpreted_products import multiply_rows_alike


@pytest.fixture(autouse=True)
def products(monkeypatch: pytest.MonkeyPatch) -> None:
    multiply_rows_alike(monkeypatch)
