"""A real deployment of all kinds of pools with too few cache blocks, and what its pages say of who is there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from outrider_doubles.chaos_checkpoint import likely_phrases, write_repetitive_checkpoint
from outrider_doubles.racing_pools import EXAMPLES, POOL_NAMES, racing_pools
from outrider_doubles.ray_head import RayHead, ray_environment
from outrider_doubles.served_cluster import ServedCluster

INTRUDERS = "intruders"
"""A pool of the configuration in which nobody is deployed."""
DEPTH = 6
CROWDED = "ngram"
"""The pool of two workers; every other one has a single worker."""
WORKERS = len(POOL_NAMES) + 1
_PHRASE_TOKENS = 5
_BLOCK_BYTES = 2 * 2 * 2 * 16 * 16 * 4
"""Keys and values, layers, heads, their size, positions, float32."""
_BLOCKS = 24
_BOUND_S = 90.0
_POLL_S = 0.1
_FIND_CONTROLLER = """
import ray
from ray import serve
ray.init(log_to_driver=False, logging_level="ERROR")
print(serve.get_deployment_handle("Controller", "outrider").address.remote().result())
"""


@dataclass(frozen=True, slots=True)
class ChaosCluster:
    """A deployment that runs."""

    served: ServedCluster
    grpc_address: str
    controller: str
    """host:port of the registry."""

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until a condition holds of the status page, within bounds; returns that page."""
        status: dict[str, Any] = {}
        for _ in range(round(_BOUND_S / _POLL_S)):
            status = await asyncio.to_thread(self.served.status)
            if condition(status):
                return status
            await asyncio.sleep(_POLL_S)
        raise AssertionError(f"never happened; status: {status}")

    async def until_counted(self, name: str, more_than: float, **labels: tuple[str, ...]) -> None:
        """Wait until a metric of the whole cluster exceeds a number, within bounds."""
        value = 0.0
        for _ in range(round(_BOUND_S / _POLL_S)):
            value = await self.counted(name, **labels)
            if value > more_than:
                return
            await asyncio.sleep(_POLL_S)
        raise AssertionError(f"{name} {labels} is {value}, expected more than {more_than}")

    async def counted(self, name: str, **labels: tuple[str, ...]) -> float:
        """A metric of the whole cluster, summed over all series whose labels have one of these values."""
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"{self.served.url}/metrics", timeout=30)).text
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return sum(
            sample.value
            for sample in samples
            if sample.name == name and all(sample.labels.get(label) in values for label, values in labels.items())
        )

    async def until_at_rest(self) -> None:
        """Wait until nothing runs, and nobody holds a session or a block."""
        await self.until(_is_at_rest)


def _is_at_rest(status: dict[str, Any]) -> bool:
    targets = status["targets"]
    links = [link for target in targets for link in target["draft_links"]]
    return (
        len(targets) == 1
        and all(target["running"] == target["waiting"] == target["kv_usage"] == 0 for target in targets)
        and all(link["sessions"] == 0 for link in links)
        and len(status["draft_workers"]) == WORKERS
        and all(worker["sessions"] == 0 for worker in status["draft_workers"])
    )


def deploy_chaos_cluster(head: RayHead, folder: Path) -> ChaosCluster:
    """Deploy it as a user would, and wait until it runs and the target is linked to all draft workers."""
    model = write_repetitive_checkpoint(folder / "tiny")
    served = ServedCluster.write(folder, model, WORKERS)
    data = yaml.safe_load(served.file.read_text(encoding="utf-8"))
    (app,) = data["applications"]
    app["runtime_env"] = {"working_dir": f"local://{EXAMPLES}"}
    args = app["args"]
    args["target"] |= {"max_model_len": 256, "max_num_batched_tokens": 64, "num_threads": 1}
    args["target"]["kv_cache_memory_bytes"] = _BLOCKS * _BLOCK_BYTES
    args["speculative_config"] = {"num_speculative_tokens": DEPTH}
    pools = racing_pools(likely_phrases(model, _PHRASE_TOKENS))
    crowded = [pool | ({"replicas": 2} if pool["name"] == CROWDED else {}) for pool in pools]
    args["draft_pools"] = [*crowded, {"name": INTRUDERS, "method": "ngram", "replicas": 0}]
    patience = {"draft_deadline_ms": 50, "lease_ms": 2_000, "quarantine_first_ms": 500}
    args["drafting"] = patience | {"drafting_price": 0}  # all pools race
    served.file.write_text(yaml.safe_dump(data), encoding="utf-8")
    head.serve_until_running(served.file)
    served.until_linked(WORKERS)
    return ChaosCluster(served, f"127.0.0.1:{args['gateway']['grpc_port']}", _controller_of(head))


def _controller_of(head: RayHead) -> str:
    """Asked by another process: this one stays out of Ray."""
    environment = ray_environment() | {"RAY_ADDRESS": head.address}
    command = [sys.executable, "-c", _FIND_CONTROLLER]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=_BOUND_S)
    return found.stdout.split()[-1]
