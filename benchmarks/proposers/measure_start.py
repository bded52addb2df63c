"""Prints how soon draft workers serve after they were placed, and how much memory is resident then.

    python benchmarks/proposers/measure_start.py [--cluster cluster.yaml] [--starts 5] [--first-port 8300]
    python benchmarks/proposers/measure_start.py --url http://127.0.0.1:8000

Serves a copy of a cluster file on a private Ray, with one worker in each pool; kills each worker again and again, and
watches Serve start the next one. With `--url` it looks at the memory of a server of this machine, and kills nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

import shared_folders  # noqa: F401
from draft_starts import Start, Worker, memory_table, ready_workers, resident_of, starts, table
from policy_server import Policy, PolicyServer, served_under

_ROOT = Path(__file__).resolve().parents[2]
_STATIC = Policy("static", "static", 4)
_READY_TIMEOUT_S = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures starts of draft workers, and their memory.")
    parser.add_argument("--url", help="a running server of this machine: its memory only")
    parser.add_argument("--cluster", type=Path, default=_ROOT / "cluster.yaml", help="default: %(default)s")
    parser.add_argument("--starts", type=int, default=5, help="of each pool (default: %(default)s)")
    parser.add_argument("--first-port", type=int, default=8300, help="first of three ports (default: %(default)s)")
    arguments = parser.parse_args()
    print(f"{_machine()}\n")
    if arguments.url is not None:
        print(memory_table([(one, resident_of(one.pid)) for one in ready_workers(arguments.url)]))
    else:
        content = yaml.safe_load(arguments.cluster.read_text("utf-8"))
        print(table(_measure(one_worker_each(content, arguments.first_port), arguments.starts)))


def one_worker_each(cluster: dict[str, Any], first_port: int) -> dict[str, Any]:
    """The content of a cluster file with one worker in each pool, and with ports of its own."""
    changed = served_under(cluster, _STATIC, first_port)
    for pool in changed["applications"][0]["args"]["draft_pools"]:
        pool.pop("autoscaling", None)
        pool["replicas"] = 1
    return changed


def _measure(content: dict[str, Any], count: int) -> list[Start]:
    found: list[Start] = []
    with PolicyServer(content) as server:
        for worker in _until_ready(server.url, len(content["applications"][0]["args"]["draft_pools"])):
            found += starts(server.url, worker, count)
    return found


def _until_ready(url: str, count: int) -> list[Worker]:
    """All workers, when so many are ready; the server is up already."""
    end_s = time.monotonic() + _READY_TIMEOUT_S
    while len(workers := ready_workers(url)) < count:
        if time.monotonic() > end_s:
            raise TimeoutError(f"{len(workers)} of {count} draft workers are ready")
        time.sleep(0.25)
    return workers


def _machine() -> str:
    facts = json.loads(subprocess.check_output([sys.executable, str(_ROOT / "benchmarks" / "machine.py"), "--json"]))
    names = ("processor", "cores", "memory", "load average", "python", "ray", "numba", "commit")
    return ", ".join(f"{name} {facts[name]}" for name in names if name in facts)


if __name__ == "__main__":
    main()
