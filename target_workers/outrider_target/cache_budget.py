"""How many cache blocks a memory budget buys, and whether they suffice."""

from __future__ import annotations

from outrider_runtime.errors import InvalidConfig
from outrider_target.forward import CacheShape
from outrider_target.settings import TargetSettings


def blocks_in_budget(settings: TargetSettings, shape: CacheShape) -> int:
    """Blocks that fit into `kv_cache_memory_bytes`.

    Raises:
        InvalidConfig: one request of `max_model_len` tokens would not fit, so that it could never finish.
    """
    count = settings.kv_cache_memory_bytes // shape.bytes_per_block
    needed = -(-settings.max_model_len // shape.block_size)
    if count < needed:
        held = count * shape.block_size
        raise InvalidConfig(
            f"target.kv_cache_memory_bytes: {settings.kv_cache_memory_bytes} bytes hold {held} tokens, fewer than "
            f"target.max_model_len = {settings.max_model_len}; "
            f"give at least {needed * shape.bytes_per_block} bytes or lower max_model_len to {held}"
        )
    return count
