"""How near two results of the same formula must be."""

from __future__ import annotations

import torch


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Float32 within rounding. In bfloat16 a last bit may differ, where a sum was near the middle of two numbers."""
    if found.dtype == torch.float32:
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    else:
        torch.testing.assert_close(found, expected, atol=1e-30, rtol=2**-7)
        assert (found == expected).float().mean() > 0.99
