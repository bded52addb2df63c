"""Machine code on disk never outlives its sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from outrider_kernels.compiling import drop_stale_code


def test_code_older_than_any_source_is_dropped_and_newer_code_stays(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for path, age in ((tmp_path / "a.py", 10), (tmp_path / "b.py", 20), (cache / "a.nbi", 15), (cache / "b.nbi", 25)):
        path.touch()
        os.utime(path, (age, age))
    drop_stale_code(tmp_path)
    assert [path.name for path in cache.iterdir()] == ["b.nbi"]


KERNELS_OF_TWO_THREADS = """
import threading, time
import numpy as np
from numba import prange, threading_layer
from outrider_kernels.compiling import compiled

@compiled(parallel=True, lets_python_run=True)
def work(values):
    for i in prange(len(values)):
        for _ in range(2000):
            values[i] = np.sqrt(values[i] + 1)

def run():
    while time.perf_counter() < end:
        work(np.ones(2000))

work(np.ones(8))
end = time.perf_counter() + 1.5
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(threading_layer())
"""


def test_kernels_of_several_threads_may_run_at_once(tmp_path: Path) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS_OF_TWO_THREADS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "omp"
