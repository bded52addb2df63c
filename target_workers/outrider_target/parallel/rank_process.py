"""A process that holds a part of the model and does what rank 0 does."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from pathlib import Path

import numba
import torch
import transformers

from outrider_runtime.models.source import resolve_source
from outrider_target.forward_choice import follow_choice
from outrider_target.parallel.alike import check_alike
from outrider_target.parallel.socket_ranks import SocketRanks
from outrider_target.settings import ModelSettings, TargetSettings
from outrider_target.weight_version import weight_version

_LOG = logging.getLogger(__name__)


def run_rank(model: ModelSettings, target: TargetSettings, meet: Callable[[], SocketRanks]) -> None:
    """Load this rank's part and follow rank 0 until it ends. Blocks.

    Args:
        model: as rank 0 has it.
        target: as rank 0 has it.
        meet: meets the other ranks, for which it may wait.

    Raises:
        ModelRefused: a model that cannot be loaded or split, or that is not the one of the other ranks.
        RanksLost: another rank is gone.
    """
    use_threads(target.num_threads)
    ranks = meet()
    try:
        folder = resolve_source(model.source, model.revision, model.cache_dir)
        check_alike(ranks, rank_facts(model, target, folder))
        _LOG.info("rank %s of %s loads its part of %s", ranks.rank, ranks.size, folder)
        follow_choice(folder, model.dtype, target.max_model_len, ranks, target.device)
    finally:
        ranks.close()


def use_threads(count: int) -> None:
    """Set the threads of torch and numba for what this thread calls: exactness holds for their number."""
    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def rank_facts(model: ModelSettings, target: TargetSettings, folder: Path) -> str:
    """What must be equal on all ranks: one that differs would give other bits, or wait for what never comes."""
    libraries = f"torch {torch.__version__}, transformers {transformers.__version__}, numba {numba.__version__}"
    weights = weight_version(folder, model.dtype)
    threads = f"{target.device}, {target.num_threads} threads, {target.max_model_len} tokens"
    return f"weights {weights}, {libraries}, {threads}, {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
