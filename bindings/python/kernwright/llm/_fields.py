"""Fields of files from anybody: each is checked when it is read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright.errors import InvalidArgument
from kernwright.llm._errors import ModelError

Path = str | os.PathLike[str]

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def import_extra(name: str, purpose: str) -> Any:
    """A package of the extra `llm`, imported when it is used. Raises ImportError."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs the package {name} ({error}): pip install 'kernwright[llm]'",
            name=name,
        ) from error


def read_bytes(path: Path) -> bytes:
    """A whole file. Raises ModelError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise ModelError(f"{os.fsdecode(path)} cannot be read: {error}") from None
    except TypeError:
        raise InvalidArgument(f"a path is a str or os.PathLike, got {path!r:.80}") from None


def read_text(path: Path) -> str:
    """A whole file of UTF-8. Raises ModelError."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{os.fsdecode(path)} is not UTF-8: {error}") from None


def read_json(path: Path) -> Fields:
    """A file with one JSON object. Raises ModelError."""
    return parse_json(os.fsdecode(path), read_text(path))


def parse_json(file: str, text: str) -> Fields:
    """The JSON object in the text of a file. Raises ModelError."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ModelError(f"{file} is nested too deep") from None
    except ValueError as error:
        raise ModelError(f"{file} is no JSON: {error}") from None
    return Fields(file, found)


class Fields:
    """The fields of an object in a file. Every error names the file and the field."""

    def __init__(self, file: str, values: Any, within: str = "") -> None:
        self.file, self.within = file, within
        if not isinstance(values, Mapping):
            where = f"{within} must be" if within else "must have"
            raise ModelError(f"{file}: {where} an object, got {values!r:.80}")
        self.values = values

    def has(self, name: str) -> bool:
        """Whether the field is there and is not null."""
        return self.values.get(name) is not None

    def need(self, name: str, kind: type) -> Any:
        """The field. Raises ModelError where it is missing or of another kind."""
        if not self.has(name):
            known = ", ".join(sorted(map(str, self.values))[:12]) or "none"
            raise ModelError(f"{self.file} has no field {self.path(name)}; there are {known}")
        return self.get(name, kind)

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """The field, or `default` where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if kind is list and isinstance(value, np.ndarray):
            value = value.tolist()
        if kind is float and type(value) is int:
            if abs(value) >= 2**127:
                raise self.wrong(name, f"is a finite number, got one of {value.bit_length()} bits")
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(name, f"must be {_WORDS[kind]}, got {value!r:.80}")
        if isinstance(value, str) and _SURROGATE.search(value):  # JSON can write one
            raise self.wrong(name, f"has a lone surrogate, which is no character: {value!r:.80}")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found = self.need(name, list)
        for i, each in enumerate(found):
            if not isinstance(each, str):
                raise self.wrong(name, f"must be a list of texts, got {each!r:.80} at {i}")
        return list(found)

    def object(self, name: str) -> Fields:
        """An object within this one; an empty one where it is missing."""
        return Fields(self.file, self.get(name, dict, {}), self.path(name))

    def path(self, name: str) -> str:
        """The name of a field with the objects around it."""
        return f"{self.within}.{name}" if self.within else name

    def wrong(self, name: str, what: str) -> ModelError:
        """The error for a field of another content than expected."""
        return ModelError(f"{self.file}: {self.path(name)} {what}")
