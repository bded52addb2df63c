"""A cluster file for tests, and its gateway as a client sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from safetensors.torch import load_file, save_file

from outrider_doubles.ray_head import eventually, free_ports
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

PROMPT = "one two one two one two"


def write_cyclic_checkpoint(folder: Path) -> Path:
    """A tiny checkpoint whose next id depends on the last one alone, so that greedy text runs in a circle."""
    write_tiny_checkpoint(folder)
    file = folder / "model.safetensors"
    weights = load_file(file)
    silenced = {name: weight * 0 for name, weight in weights.items() if name.endswith("o_proj.weight")}
    save_file(weights | silenced, file, metadata={"format": "pt"})
    return folder


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """The file and where what it describes listens."""

    file: Path
    url: str
    serve_url: str
    """Serve's own HTTP proxy."""

    @classmethod
    def write(cls, folder: Path, model: Path, draft_workers: int, **target: Any) -> ServedCluster:
        """Write the file into `folder`, for the checkpoint in `model`; `target` adds to the target's settings."""
        http, grpc, serve = free_ports(3)
        bounds = {"max_num_seqs": 8, "max_model_len": 384, "kv_cache_memory_bytes": "8MiB", "num_threads": 1}
        args = {
            "model": {"source": str(model), "served_name": "tiny", "dtype": "float32"},
            "target": bounds | target,
            "draft_pools": [
                {"name": "ngram", "method": "ngram", "replicas": draft_workers, "prompt_lookup_min": 1},
            ],
            "drafting": {"draft_deadline_ms": 500},
            "gateway": {"http_port": http, "grpc_port": grpc},
            "network": {"internal_host": "127.0.0.1"},
        }
        app = {"name": "outrider", "import_path": "outrider_cluster.app:build", "args": args}
        data = {
            "proxy_location": "HeadOnly",
            "http_options": {"host": "127.0.0.1", "port": serve},
            "applications": [app],
        }
        file = folder / "cluster.yaml"
        file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return cls(file, f"http://127.0.0.1:{http}", f"http://127.0.0.1:{serve}")

    def complete(self, url: str | None = None, **fields: Any) -> dict[str, Any]:
        """A completion of 96 greedy tokens, unless `fields` say otherwise; fails unless it is answered well."""
        body = {"model": "tiny", "prompt": PROMPT, "max_tokens": 96, "temperature": 0, "ignore_eos": True, **fields}
        answer = httpx.post(f"{url or self.url}/v1/completions", json=body, timeout=120)
        assert answer.status_code == httpx.codes.OK, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def text(self, url: str | None = None, **fields: Any) -> str:
        """The text of such a completion."""
        text: str = self.complete(url, **fields)["choices"][0]["text"]
        return text

    def status(self) -> dict[str, Any]:
        """The gateway's status page."""
        found: dict[str, Any] = httpx.get(f"{self.url}/outrider/v1/status", timeout=60).json()
        return found

    def draft_pids(self) -> set[int]:
        """Process ids of the draft workers that are listed."""
        return {worker["pid"] for worker in self.status()["draft_workers"]}

    def linked_pids(self) -> set[int]:
        """Process ids of the draft workers that the target is linked to."""
        status = self.status()
        ready = {
            link["worker"] for target in status["targets"] for link in target["draft_links"] if link["state"] == "ready"
        }
        return {worker["pid"] for worker in status["draft_workers"] if worker["worker"] in ready}

    def until_linked(self, count: int, without: frozenset[int] = frozenset()) -> None:
        """Return when the target is linked to `count` draft workers, none of them in `without`."""
        eventually(lambda: len(self.linked_pids() - without) >= count, 120, lambda: str(self.status()))
