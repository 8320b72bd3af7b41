"""The cache files of Kernel Tuner: what it measured, read and never written."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from kernwright._support.files import read_bytes
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config

_ERRORS = ("ErrorConfig", "InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig")
_HEAD = 1 << 16  # bytes in which its header stands


def checked_cost(objective: str, value: float) -> float:
    """A cost from a file. InvalidArgument for a time that is none."""
    if objective == "time" and not value > 0:
        raise InvalidArgument(f"a time of {value}: times are numbers above 0")
    return value


class KernelTunerCache:
    """A document with `cache`, a row for each configuration by the text of its values. The file of
    a running or interrupted session lacks the last brackets."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        text = data.decode("utf-8", "replace").rstrip()
        document = self._parsed(text)
        rows = document.get("cache")
        keys = document.get("tune_params_keys")
        if not isinstance(rows, Mapping) or not isinstance(keys, list):
            raise InvalidArgument(
                f"{name} is no cache file of Kernel Tuner: it has a dict cache and a list "
                "tune_params_keys"
            )
        self.document: dict[str, Any] = document
        self.keys = [str(key) for key in keys]
        self.rows: dict[Config, dict[str, Any]] = dict(map(self._row, rows.values()))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> KernelTunerCache:
        """StoreError for a file that cannot be read."""
        return cls(read_bytes(path), os.fspath(path))

    @staticmethod
    def is_cache(data: bytes) -> bool:
        """Whether a file begins as one."""
        head = data[:_HEAD]
        return head.lstrip()[:1] == b"{" and b'"tune_params_keys"' in head and b'"cache"' in data

    def _parsed(self, text: str) -> dict[str, Any]:
        closed = (text, text.rstrip(",") + "}\n}", text.rstrip(",") + "}")
        for attempt in closed:
            try:
                document = json.loads(attempt)
            except (ValueError, RecursionError):
                continue
            if isinstance(document, dict):
                return document
        raise InvalidArgument(f"{self.name} is no cache file of Kernel Tuner: it is no JSON")

    def _row(self, row: Any) -> tuple[Config, dict[str, Any]]:
        if not isinstance(row, Mapping) or any(key not in row for key in self.keys):
            raise InvalidArgument(f"{self.name}: a row lacks one of {', '.join(self.keys)}")
        try:
            return Config({key: row[key] for key in self.keys}), dict(row)
        except ArgumentError as error:
            raise InvalidArgument(f"{self.name}: {error}") from None

    def error_of(self, config: Config) -> str | None:
        """The name of what failed; None for a configuration that was measured."""
        for value in self.rows[config].values():
            if isinstance(value, str) and value in _ERRORS:
                return value
        return None

    def cost(self, config: Config, objective: str) -> float | None:
        """None where it failed. Older files write 1e20 for that."""
        row = self.rows[config]
        if self.error_of(config) is not None:
            return None
        value = row.get(objective)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidArgument(f"{self.name}: {config!r} has no number {objective!r}")
        if not math.isfinite(value) or abs(value) >= 1e20:
            return None
        try:
            return checked_cost(objective, float(value))
        except InvalidArgument as error:
            raise InvalidArgument(f"{self.name}: {config!r} has {error}") from None

    def costs(self, objective: str) -> dict[Config, float | None]:
        return {config: self.cost(config, objective) for config in self}

    def __iter__(self) -> Iterator[Config]:
        return iter(self.rows)
