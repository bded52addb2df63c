"""Settings of a target: which model, and how much of the machine it may use. Imports no torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from outrider_runtime.scaling_settings import check_one_number
from outrider_runtime.settings import MOST_BYTES, ByteSize, Settings
from outrider_target.scaling_settings import TargetScaling

Device = Literal["cpu", "cuda"]


class ModelSettings(Settings):
    """The model that targets serve."""

    source: str = Field(default="demo", min_length=1)
    """`demo` for the embedded model, a folder, or a hub id."""
    revision: str | None = None
    """Hub revision for all files of the model; None takes the hub's default. Only with a hub id."""
    served_name: str | None = Field(default=None, min_length=1, max_length=128)
    """Name that clients use; None takes the last part of the source."""
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Type of weights and activations."""
    cache_dir: str | None = None
    """Folder for converted and downloaded models; None takes the user's cache folder."""

    @property
    def name(self) -> str:
        """The name that clients use."""
        return self.served_name or self.source.rstrip("/").rsplit("/", 1)[-1]


class TargetSettings(Settings):
    """One target replica and the bounds it keeps."""

    tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    """Processes that share the model in one replica. Must divide the numbers of attention and key-value heads."""
    rank_timeout_s: float = Field(default=20.0, ge=1, le=600)
    """Longest wait for another rank within a step; then the replica is replaced as a whole."""
    replicas: int = Field(default=1, ge=1, le=64)
    """Independent target replicas."""
    autoscaling: TargetScaling | None = None
    """Instead of `replicas`: as many as the load calls for, within bounds."""
    max_num_seqs: int = Field(default=32, ge=1, le=1024)
    """Requests that take part in one step at most."""
    max_num_batched_tokens: int = Field(default=512, ge=16, le=65536)
    """Tokens in one step at most, over prefill chunks, decode tokens and proposals."""
    max_model_len: int = Field(default=2048, ge=16, le=1 << 20)
    """Prompt and output tokens of one request at most."""
    max_waiting: int = Field(default=512, ge=0)
    """Choices of requests that may wait for room; more are refused. The default holds the largest request that the
    gateway takes by default."""
    kv_cache_memory_bytes: ByteSize = Field(default=1 << 30, ge=1 << 16, le=MOST_BYTES)
    """Memory for keys and values in each rank, in bytes or as text such as 1GiB."""
    enable_prefix_caching: bool = True
    """Reuse keys and values of prompts that start alike."""
    device: Device = "cpu"
    """Where the model runs. `cuda`: each rank reserves a GPU in Ray; for Llama-like models. No GPU has run it yet."""
    num_threads: int = Field(default=2, ge=1, le=256)
    """Threads of the forward pass in each rank. Part of the conditions for equal output."""
    self_check_interval_s: float | None = Field(default=60.0, ge=1, le=86400)
    """Seconds between two checks that a fixed text still has the logits that it had at the start; a target whose logits
    have changed is replaced. None never checks."""
    num_cpus: float = Field(default=0.0, ge=0, le=4096)
    """CPUs that each rank reserves in Ray; 0 schedules it anywhere."""

    @property
    def num_gpus(self) -> int:
        """GPUs that each rank reserves in Ray."""
        return 1 if self.device == "cuda" else 0

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        """The number of replicas is fixed or not."""
        check_one_number(self, self.autoscaling)
        return self
