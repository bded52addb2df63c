"""What must be settled before any test module is imported."""

from __future__ import annotations

import os

# Triton reads this when a kernel is decorated, those of its own library included: so before anything imports triton.
os.environ.setdefault("TRITON_INTERPRET", "1")
