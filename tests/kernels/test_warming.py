"""After warming up, no step waits for a compiler."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from outrider_kernels import bad_rows, paged_attention_numba, verify_numba
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paged_attention_numba import paged_attention, write_cache
from outrider_kernels.verify import verify
from outrider_kernels.warming import warm_up

KERNELS = [
    bad_rows._bad_logit_rows,
    verify_numba.verify_rows,
    paged_attention_numba._attend,
    paged_attention_numba._write,
]


@pytest.mark.parametrize(("dtype", "kind"), [(torch.float32, np.float32), (torch.bfloat16, np.uint16)])
def test_a_step_after_warming_up_compiles_nothing(sampling_rows, verify_rows, dtype, kind) -> None:
    warm_up(dtype)
    before = [kernel.signatures[:] for kernel in KERNELS]
    assert all(before)
    verify(torch.zeros(5, 100, dtype=torch.bfloat16), verify_rows([[1, 2], [], []]), sampling_rows(3, 0.7, 20, 0.9))
    changes = stack_changes([RowChange(presence=1.0, words=(np.ones(2, np.int32),)), None, None])
    verify(torch.zeros(3, 100), verify_rows([[], [], []]), sampling_rows(3), changes)
    tokens, places = np.zeros((3, 4, 16), np.float32), np.arange(3, dtype=np.int32)
    keys, values = np.zeros((2, 4, 16, BLOCK_SIZE), kind), np.zeros((2, 4, BLOCK_SIZE, 16), kind)
    write_cache(tokens, tokens, keys, values, np.arange(3))
    paged_attention(tokens, keys, values, np.zeros((1, 2), np.int32), np.zeros(3, np.int32), places, 0.25, 8)
    assert [kernel.signatures for kernel in KERNELS] == before
