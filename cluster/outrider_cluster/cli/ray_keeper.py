"""The process that holds a private Ray: it says when Ray is up, and ends Ray when its standard input ends.

It is a process of its own, in a session of its own, for two reasons: Ctrl-C goes to the whole process group of a
terminal, and parts of Ray would die of it before requests have drained; and a parent that is killed closes the pipe
like one that ends well, so that nothing of Ray outlives it.
"""

from __future__ import annotations

import argparse
import json
import sys

LOOPBACK = "127.0.0.1"
_OBJECT_STORE_BYTES = 128 << 20
"""Next to nothing goes through Ray's object store."""


def main() -> None:
    """Start Ray, write one line of JSON (``{"error": null}`` or what went wrong), and wait for the end of input."""
    parser = argparse.ArgumentParser(description="Holds a private Ray until standard input ends.")
    parser.add_argument("--folder", required=True, help="for Ray's sockets and logs")
    parser.add_argument("--dashboard-port", type=int, required=True)
    arguments = parser.parse_args()
    import ray

    try:
        ray.init(
            address="local",  # a new one, even if another runs here
            include_dashboard=True,
            dashboard_host=LOOPBACK,
            dashboard_port=arguments.dashboard_port,
            object_store_memory=_OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level="ERROR",
            _node_ip_address=LOOPBACK,
            _temp_dir=arguments.folder,
        )
    except Exception as error:  # Ray raises whatever broke first
        _say(_in_words(error))
    else:
        _say(None)
        sys.stdin.buffer.read()
    finally:
        ray.shutdown()


def _in_words(error: Exception) -> str:
    """On one line, without a full stop, and without a name that says nothing."""
    text = " ".join(str(error).split()).rstrip(".")
    return text if text and type(error) in (Exception, RuntimeError) else f"{type(error).__name__}: {text}"


def _say(error: str | None) -> None:
    print(json.dumps({"error": error}), flush=True)


if __name__ == "__main__":
    main()
