"""`outrider corpus`: what draft workers remember of ended requests."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from outrider_cluster.cli.api_key import ApiKey
from outrider_cluster.cli.failure import CommandFailed, exit_codes, one_line
from outrider_cluster.cli.url import require_url

_TIMEOUT_S = 30.0

corpus = typer.Typer(help="What draft workers remember of ended requests.", no_args_is_help=True)


@corpus.callback()
def _corpus() -> None:
    """Keeps `clear` a command of its own: Typer would fold a single one into its group."""


@corpus.command()
def clear(
    pool: Annotated[str, typer.Argument(help="Name of a draft pool.", show_default=False)],
    url: Annotated[str, typer.Option(envvar="OUTRIDER_URL", help="Base URL of a gateway.")] = "http://127.0.0.1:8000",
    api_key: ApiKey = None,
) -> None:
    """Have every worker of POOL forget the outputs and files that it has learned from. Requests go on."""
    with exit_codes():
        workers = _clear(require_url("--url", url), pool, api_key)
        cleared = sum(worker["remembers"] for worker in workers)
        told = f"{cleared} of {len(workers)} workers had a corpus, which is cleared" if cleared else "nothing to clear"
        typer.echo(f"pool {pool}: {told}")


def _clear(url: str, pool: str, api_key: str | None) -> list[dict[str, Any]]:
    import httpx

    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    place = f"{url.rstrip('/')}/outrider/v1/corpus/{quote(pool, safe='')}"
    try:
        answer = httpx.delete(place, headers=headers, timeout=_TIMEOUT_S, trust_env=False)
        found = answer.json()
        if answer.is_success:
            workers: list[dict[str, Any]] = found["workers"]
            return workers
        raise CommandFailed(f"{url} answers {answer.status_code}: {one_line(found['error']['message'])}")
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise CommandFailed(f"no gateway answers at {url}: {error}; start one, or name another with --url") from error
    except (ValueError, LookupError, TypeError) as error:
        raise CommandFailed(f"{url} is no gateway of Outrider: it does not answer as one does") from error
