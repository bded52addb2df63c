"""The protocol: generated code is what the sources generate, and every name in it is explained."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from outrider_doubles.repository import ROOT, proto_files, relative


def test_generated_code_is_what_the_protos_generate(tmp_path: Path) -> None:
    _protoc(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", f"--grpc_python_out={tmp_path}")
    fresh = {file.relative_to(tmp_path).as_posix(): file.read_text() for file in _files(tmp_path)}
    committed = {file.relative_to(ROOT / "protos").as_posix(): file.read_text() for file in _generated_files()}
    differing = {name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name)}
    assert differing == set(), "run `make protos` and commit what it writes"


@pytest.mark.parametrize("proto", proto_files(), ids=relative)
def test_every_name_has_a_comment_that_begins_with_it(proto: Path, tmp_path: Path) -> None:
    described = tmp_path / "described"
    _protoc("--include_source_info", f"--descriptor_set_out={described}")
    sources = {file.name: file for file in FileDescriptorSet.FromString(described.read_bytes()).file}
    source = sources[proto.relative_to(ROOT / "protos").as_posix()]
    comments = {tuple(place.path): place.leading_comments for place in source.source_code_info.location}
    names = list(_names(source))
    assert names
    assert [name for path, name in names if not comments.get(path, "").lstrip().startswith(name)] == []


def _names(source: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], str]]:
    """Path (as in SourceCodeInfo) and name of every message, field, enum, enum value, service and method."""
    for i, message in enumerate(source.message_type):
        yield (4, i), message.name
        yield from (((4, i, 2, j), field.name) for j, field in enumerate(message.field))
        yield from (((4, i, 8, j), oneof.name) for j, oneof in enumerate(message.oneof_decl) if _is_written(message, j))
    for i, enum in enumerate(source.enum_type):
        yield (5, i), enum.name
        yield from (((5, i, 2, j), value.name) for j, value in enumerate(enum.value))
    for i, service in enumerate(source.service):
        yield (6, i), service.name
        yield from (((6, i, 2, j), method.name) for j, method in enumerate(service.method))


def _is_written(message: object, oneof_index: int) -> bool:
    """Whether a oneof stands in the source; the compiler invents one for each optional field."""
    fields = [field for field in message.field if field.HasField("oneof_index") and field.oneof_index == oneof_index]
    return not all(field.proto3_optional for field in fields)


def _protoc(*options: str) -> None:
    protos: Sequence[str] = [str(file) for file in proto_files()]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT / "protos"), *options, *protos]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def _generated_files() -> list[Path]:
    return _files(ROOT / "protos" / "outrider")


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*_pb2*") if file.suffix in {".py", ".pyi"})
