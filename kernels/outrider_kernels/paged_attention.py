"""Contract and reference of attention over a paged cache.

    out[t, h] = sum over positions j of softmax_j(scale * queries[t, h] . key[j, h // G]) * value[j, h // G]

where j runs over the positions of the token's own row from 0 (with a window w > 0: from positions[t] - w + 1) to
positions[t], and G = H / KH query heads share a key-value head.

Sizes
    T query tokens of all rows, H query heads, KH key-value heads, D head size, B rows, W blocks of the longest row.
    A block holds BLOCK_SIZE consecutive absolute positions: position p of row b lies in block
    block_tables[b, p // BLOCK_SIZE] at offset p % BLOCK_SIZE.

Arguments, the same for every form of the kernel
    queries      [T, H, D] float32
    key_cache    [num_blocks, KH, D, BLOCK_SIZE], transposed within a block: one load meets 16 positions
    value_cache  [num_blocks, KH, BLOCK_SIZE, D]; both float32 or both bfloat16, which on CPUs are kept as uint16 bits.
                 There memory may have the other order within a block (`key_value_cache_numba`): shapes stay the same
    block_tables [B, W] int32; entries past a row's last position are not read
    token_rows   [T] int32, row of each token; neighbours of one row share the loads of its keys
    positions    [T] int32, absolute; the token's own key and value are in the cache already
    scale        of the scores, usually D ** -0.5
    window       positions that a token sees, itself included; 0 means all

Exactness
    Every query is summed over blocks of absolute positions in ascending order, however it came to be
    computed: alone, in a prefill of any cut, beside any other rows, on any number of threads. The order depends on its
    position and on the window, on nothing else. Places of a block that a query does not see may hold anything, NaN
    included: another request may have left it there. What it does see is not filtered: NaN in, NaN out.

Online softmax: Milakov and Gimelshein, arXiv 1805.02867. Paged cache: Kwon et al., arXiv 2309.06180.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.number_formats_numba import Numbers

BLOCK_SIZE = 16
"""Positions per block: what one vector register holds in float32."""


def paged_attention_reference(
    queries: npt.NDArray[np.float32],
    key_cache: Numbers,
    value_cache: Numbers,
    block_tables: npt.NDArray[np.int32],
    token_rows: npt.NDArray[np.int32],
    positions: npt.NDArray[np.int32],
    scale: float,
    window: int = 0,
) -> npt.NDArray[np.float64]:
    """The formula of this module in float64, token by token; slow and plain. Returns [T, H, D] float64."""
    group = queries.shape[1] // key_cache.shape[1]
    out = np.zeros(queries.shape)
    for token, (row, position) in enumerate(zip(token_rows, positions, strict=True)):
        first = max(0, position - window + 1) if window else 0
        seen = np.arange(first, position + 1)
        blocks, offsets = block_tables[row, seen // BLOCK_SIZE], seen % BLOCK_SIZE
        keys = _doubles(key_cache[blocks, :, :, offsets]).repeat_interleave(group, 1)
        values = _doubles(value_cache[blocks, :, offsets]).repeat_interleave(group, 1)
        scores = torch.einsum("hd,jhd->hj", torch.from_numpy(queries[token]).double(), keys) * scale
        out[token] = torch.einsum("hj,jhd->hd", scores.softmax(1), values).numpy()
    return out


def _doubles(numbers: Numbers) -> torch.Tensor:
    held = torch.from_numpy(numbers)
    return (held.view(torch.bfloat16) if numbers.dtype == np.uint16 else held).double()
