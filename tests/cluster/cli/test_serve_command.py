"""`outrider serve` before anything starts: a port that is taken is named at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.repository import ROOT
from typer.testing import CliRunner

from outrider_cluster.cli import serving
from outrider_cluster.cli.failure import CommandFailed
from outrider_cluster.cli.free_ports import require_free
from outrider_cluster.cli.main import app
from outrider_cluster.config.ports import Listener
from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_source import parse_yaml


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of the loopback address on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_gpu_that_is_missing_is_named_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(serving, "PrivateRay")
    monkeypatch.delattr(serving, "_fetch_models")
    monkeypatch.setattr("outrider_cluster.config.device_check.may_have_gpu", lambda: False)
    file = tmp_path / "cluster.yaml"
    config = with_port("http_options.port", 0)
    config["applications"][0]["args"]["target"]["device"] = "cuda"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    result = CliRunner().invoke(app, ["serve", str(file)])
    assert result.exit_code == 1
    assert "target.device: needs a GPU, and this machine shows none of NVIDIA's, got cuda" in result.stderr


@pytest.mark.parametrize("key", ["http_options.port", "gateway.http_port", "gateway.grpc_port"])
def test_a_port_that_is_taken_is_named_before_anything_starts(
    key: str, taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(serving, "PrivateRay")
    monkeypatch.delattr(serving, "_fetch_models")
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(with_port(key, taken)), encoding="utf-8")
    result = CliRunner().invoke(app, ["serve", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"outrider: 127.0.0.1:{taken} is in use: ")
    assert f"give {'applications[0].args.' * key.startswith('gateway')}{key} another port" in result.stderr
    assert result.stderr.count("\n") == 1


def test_several_ports_that_are_taken_have_a_line_each(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [Listener((key,), "127.0.0.1", taken) for key in ("one", "two")]
    with pytest.raises(CommandFailed, match=r"^2 addresses cannot be had; nothing was started$"):
        require_free(wanted)
    assert [line.split(", or give ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "one another port",
        "two another port",
    ]


def test_free_ports_and_port_0_pass_and_stay_free() -> None:
    listeners = validate_source(parse_yaml(yaml.safe_dump(with_port("gateway.http_port", 0)), "x")).listeners
    assert [listener.port for listener in listeners].count(0) == 3
    require_free(listeners)
    require_free(listeners)


def test_a_listener_on_all_addresses_holds_each_of_them() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server, pytest.raises(CommandFailed, match="is in use"):
        require_free([Listener(("port",), "127.0.0.1", server.getsockname()[1])])


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    with pytest.raises(CommandFailed, match=r"192\.0\.2\.1:0, of host, cannot be listened on: "):
        require_free([Listener(("host",), "192.0.2.1", 0)])


def with_port(key: str, port: int) -> dict[str, Any]:
    """The file of the repository with this port; all others take free ones."""
    data: dict[str, Any] = yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))
    data["http_options"]["port"] = 0
    gateway = data["applications"][0]["args"]["gateway"]
    gateway |= {"http_port": 0, "grpc_port": 0}
    section, name = key.split(".")
    (data if section == "http_options" else data["applications"][0]["args"])[section][name] = port
    return data
