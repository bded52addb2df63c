"""What must be settled before any test module is imported, and before every test."""

from __future__ import annotations

import os
import sys

# Triton reads this when a kernel is decorated, those of its own library included: so before anything imports triton.
os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
from hypothesis import HealthCheck, settings

# Tests are about behaviour: how long an example takes says how busy the machine is. The same examples every time, so
# that a change is what makes a test fail; `--hypothesis-profile explore` looks for new ones.
settings.register_profile("outrider", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("outrider"), derandomize=False, max_examples=1000)
settings.load_profile("outrider")


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Torch's numbers do not follow from which tests ran before; tests that never import torch need not wait for it."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
