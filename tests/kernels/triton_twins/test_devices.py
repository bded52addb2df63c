"""Without triton everything imports, and logits on a GPU are refused with what is missing."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None  # as if it were not installed
import torch
import outrider_kernels.logprobs, outrider_kernels.verify
import outrider_kernels.triton_twins.logprobs, outrider_kernels.triton_twins.offline
from outrider_kernels.triton_twins.devices import check_device
from outrider_kernels.triton_twins.verification import verify_on_gpu
try:
    check_device(torch.zeros(1, 1))
except RuntimeError as error:
    print(error)
"""


def test_kernels_import_without_triton_and_say_that_a_gpu_needs_it() -> None:
    command = [sys.executable, "-c", WITHOUT_TRITON]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "expected triton for logits on a GPU, given none: install outrider[gpu]"
