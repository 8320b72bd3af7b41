"""The tensors of a model's files as one list, whichever of the files each is in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Protocol

from kernwright._core import Array
from kernwright._files.safetensors import SafeTensors, index_parts
from kernwright.errors import StoreError
from kernwright.llm._errors import ModelError

__all__ = ["Tensors", "opened"]

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


class Tensors(Protocol):
    """Arrays by name whose shapes and dtypes are known before they are read."""

    source: str

    def names(self) -> list[str]: ...
    def shape(self, name: str) -> tuple[int, ...]: ...
    def dtype(self, name: str) -> str: ...
    def read(self, name: str) -> Array: ...
    def read_into(self, arrays: Mapping[str, Array]) -> None: ...


class _Files:
    """One or several safetensors files."""

    def __init__(self, source: str, files: Mapping[str, SafeTensors]) -> None:
        self.source, self._files = source, files

    def names(self) -> list[str]:
        return list(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._files[name].shape(name)

    def dtype(self, name: str) -> str:
        return self._files[name].dtype(name)

    def read(self, name: str) -> Array:
        return self._files[name][name]

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        by_file: dict[int, dict[str, Array]] = {}
        for name, array in arrays.items():
            by_file.setdefault(id(self._files[name]), {})[name] = array
        for group in by_file.values():
            self._files[next(iter(group))].read_into(group)


@contextlib.contextmanager
def opened(folder: str) -> Iterator[Tensors]:
    """The tensors of a folder: model.safetensors, or the parts that its index names. Raises
    ModelError where there are none, StoreError for damaged ones."""
    index, single = os.path.join(folder, _INDEX), os.path.join(folder, _SINGLE)
    with contextlib.ExitStack() as stack:
        if os.path.exists(index):
            parts = index_parts(index)
            missing = [
                each
                for each in dict.fromkeys(parts.values())
                if not os.path.exists(os.path.join(folder, each))
            ]
            if missing:
                raise ModelError(f"{index} names files that are missing: {', '.join(missing)}")
            files = {
                each: stack.enter_context(SafeTensors(os.path.join(folder, each)))
                for each in dict.fromkeys(parts.values())
            }
            for name, part in parts.items():
                if name not in files[part]:
                    raise StoreError(f"{index} says that {part} has {name!r}, which it has not")
            yield _Files(folder, {name: files[part] for name, part in parts.items()})
        elif os.path.exists(single):
            file = stack.enter_context(SafeTensors(single))
            yield _Files(single, dict.fromkeys(file, file))
        else:
            raise ModelError(
                f"{folder} has neither {_SINGLE} nor {_INDEX}: a config without weights"
            )
