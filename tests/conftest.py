"""What must be settled before any test module is imported."""

from __future__ import annotations

import os

# Triton reads this when a kernel is decorated, those of its own library included: so before anything imports triton.
os.environ.setdefault("TRITON_INTERPRET", "1")

from hypothesis import HealthCheck, settings

# Tests are about behaviour: how long an example takes says how busy the machine is.
settings.register_profile("outrider", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outrider")
