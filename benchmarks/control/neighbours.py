"""Lets these scripts import from the folders that they share modules with; a script sees its own folder only."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / folder) for folder in ("benchmarks/serving", "examples")]
