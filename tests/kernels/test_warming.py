"""After warming up, no step waits for a compiler."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from outrider_kernels import bad_rows, key_value_cache_numba, paged_attention_numba, verify_numba
from outrider_kernels.key_value_cache_numba import new_cache, write_cache
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.verify import verify
from outrider_kernels.warming import warm_up_attention, warm_up_verify

KERNELS = [
    bad_rows._bad_logit_rows,
    verify_numba.verify_rows,
    paged_attention_numba._attend,
    key_value_cache_numba._write,
]


@pytest.mark.parametrize(("dtype", "kind"), [(torch.float32, np.float32), (torch.bfloat16, np.uint16)])
def test_a_step_after_warming_up_compiles_nothing(sampling_rows, verify_rows, dtype, kind) -> None:
    warm_up_verify()
    warm_up_attention(dtype)
    before = [kernel.signatures[:] for kernel in KERNELS]
    assert all(before)
    verify(torch.zeros(5, 100, dtype=torch.bfloat16), verify_rows([[1, 2], [], []]), sampling_rows(3, 0.7, 20, 0.9))
    changes = stack_changes([RowChange(presence=1.0, words=(np.ones(2, np.int32),)), None, None])
    verify(torch.zeros(3, 100), verify_rows([[], [], []]), sampling_rows(3), changes)
    for head_dim in (16, 64):
        tokens, places = np.zeros((3, 4, head_dim), np.float32), np.arange(3, dtype=np.int32)
        cache = new_cache(2, 4, head_dim, kind)
        write_cache(tokens, tokens, cache, np.arange(3))
        paged_attention(tokens, cache, np.zeros((1, 2), np.int32), np.zeros(3, np.int32), places, 0.25, 8)
    assert [kernel.signatures for kernel in KERNELS] == before
