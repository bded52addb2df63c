"""Ray Serve's REST API, as `ray serve deploy` uses it: on the dashboard's address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from outrider_cluster.cli.failure import CommandFailed, one_line
from outrider_cluster.cli.serve_state import ApplicationState, read_applications

_PATH = "/api/serve/applications/"
_TIMEOUT_S = 60.0
FIRST_ANSWER_S = 20.0
"""Longest wait for the first answer of a Ray that somebody else started: a person waits, and it may be stuck."""


class ServeApi:
    """One dashboard.

    Args:
        url: its address, such as ``http://127.0.0.1:8265``.
        token: Ray's authentication token, where the cluster wants one.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def deploy(self, config: Mapping[str, Any]) -> None:
        """Make `config` the state of the cluster; returns before it is.

        Raises:
            CommandFailed: the cluster cannot be reached, or does not take it.
        """
        self._ask("PUT", config)

    def applications(self, timeout_s: float = _TIMEOUT_S) -> tuple[ApplicationState, ...]:
        """All applications; none when Serve does not run.

        Args:
            timeout_s: longest wait for the answer.

        Raises:
            CommandFailed: the cluster cannot be reached, or answers too slowly.
        """
        return read_applications(self._ask("GET", timeout_s=timeout_s).json())

    def is_serving(self) -> bool:
        """Whether Serve runs at all, with or without applications.

        Raises:
            CommandFailed: the cluster cannot be reached.
        """
        return bool(self._ask("GET").json().get("controller_info"))

    def shut_down(self, timeout_s: float) -> None:
        """End Serve with all its applications; returns when they have drained.

        Raises:
            CommandFailed: the cluster cannot be reached, or it took longer than `timeout_s` seconds.
        """
        self._ask("DELETE", timeout_s=timeout_s)

    def _ask(self, verb: str, body: object = None, timeout_s: float = _TIMEOUT_S) -> httpx.Response:
        try:
            answer = httpx.request(
                verb, self.url + _PATH, json=body, headers=self._headers, timeout=timeout_s, trust_env=False
            )
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise CommandFailed(f"address {self.url!r} is no URL such as http://127.0.0.1:8265: {error}") from error
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise CommandFailed(
                f"{self.url} answers too slowly: connected, but no answer in {timeout_s:g} s"
            ) from error
        except httpx.TransportError as error:
            hint = "is Ray running there, with its dashboard?"
            raise CommandFailed(f"no answer from {self.url}: {type(error).__name__}: {error}; {hint}") from error
        if answer.is_error:
            raise CommandFailed(f"{self.url} answers {answer.status_code}: {one_line(answer.text)[:500]}")
        return answer
