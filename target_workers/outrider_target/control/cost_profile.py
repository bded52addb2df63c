"""Measured step times on disk: where they were taken, and whether they hold here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepCostModel, StepLoad, StepSample

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """What step times depend on besides the step. Times hold where all of it is equal."""

    model: str
    """Fingerprint of the weights."""
    dtype: str
    tensor_parallel_size: int
    threads: int
    hardware: str
    versions: str
    """The forward pass and the libraries under it."""

    @property
    def digest(self) -> str:
        """A short name for files."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Step times and where they were taken."""

    key: ProfileKey
    samples: tuple[StepSample, ...]

    def model(self) -> StepCostModel:
        """The model that fits the times."""
        return StepCostModel.fit(self.samples)

    def save(self, path: Path) -> None:
        """Write the profile; readers see the old file or the new one, never a part."""
        data = {
            "format": _FORMAT,
            "key": asdict(self.key),
            "samples": [[*sample.load, sample.seconds] for sample in self.samples],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        part.replace(path)

    def differences(self, here: Mapping[str, object]) -> list[str]:
        """Each part of the key that is another one here, in words.

        Args:
            here: parts of the key as they are here, by name; those that are not known are left out.
        """
        taken = asdict(self.key)
        return [
            f"{name} is {taken[name]!r}, here it is {value!r}" for name, value in here.items() if taken[name] != value
        ]

    def check_holds(self, key: ProfileKey, path: Path) -> None:
        """Refuse times that were taken elsewhere.

        Args:
            key: what holds here.
            path: where the profile came from, for the message.

        Raises:
            InvalidConfig: naming each part of the key that differs, and what to do.
        """
        differing = self.differences(asdict(key))
        if differing:
            raise InvalidConfig(
                f"{path}: this cost profile was taken elsewhere: {'; '.join(differing)}. "
                "Leave controller.dynamic.profile out to measure at start, or give a profile taken here."
            )

    def check_reaches(self, greatest: StepLoad, path: Path) -> None:
        """Refuse times that end far below the steps that can occur: beyond them a model only guesses.

        Args:
            greatest: rows and tokens that steps may have.
            path: where the profile came from, for the message.

        Raises:
            InvalidConfig: the largest measured step has fewer rows or tokens.
        """
        rows = max(sample.load.rows for sample in self.samples)
        tokens = max(sample.load.tokens for sample in self.samples)
        if rows < greatest.rows or tokens < greatest.tokens:
            raise InvalidConfig(
                f"{path}: this cost profile ends at {rows:.0f} rows and {tokens:.0f} tokens, "
                f"here steps may have {greatest.rows:.0f} rows and {greatest.tokens:.0f} tokens"
            )


def load_profile(path: Path) -> CostProfile:
    """Read a profile.

    Raises:
        InvalidConfig: the file cannot be read, or is no profile.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        return _parse(data)
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidConfig(f"{path}: is no cost profile: {type(error).__name__}: {error}") from error


def _parse(data: Any) -> CostProfile:
    if data["format"] != _FORMAT:
        raise ValueError(f"format is {data['format']!r}, expected {_FORMAT}")
    samples = tuple(
        StepSample(StepLoad(float(rows), float(tokens), float(context)), float(seconds))
        for rows, tokens, context, seconds in data["samples"]
    )
    if not samples:
        raise ValueError("samples: there are none")
    if not all(sample.seconds > 0 and sample.load.tokens > 0 for sample in samples):
        raise ValueError("tokens and seconds must be more than 0")
    return CostProfile(ProfileKey(**data["key"]), samples)
