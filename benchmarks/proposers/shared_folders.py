"""Lets a script of this folder import from those that it shares modules with; a script sees its own folder only."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / folder) for folder in ("benchmarks/control", "benchmarks/serving", "examples")]
