"""The tensors of a model's files as one list, whichever of the files each is in."""

from __future__ import annotations

import abc
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._files.gguf import Gguf, split_mxfp4
from kernwright._files.opening import read_parts
from kernwright._files.safetensors import SafeTensors, index_parts
from kernwright.errors import StoreError
from kernwright.llm._errors import ModelError

__all__ = ["GgufTensors", "JoinedLatent", "SafeTensorsFiles", "Tensors", "opened_folder"]

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


class Tensors(abc.ABC):
    """Arrays by name whose shapes and formats are known before they are read."""

    source: str
    """The file or folder, for messages."""

    @abc.abstractmethod
    def names(self) -> list[str]:
        """The names of all tensors."""

    @abc.abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor's numbers."""

    @abc.abstractmethod
    def dtype(self, name: str) -> str:
        """The dtype of a tensor, or its format, one of kw.nn.quant.formats(), "int8_rows" or
        "fp8_rows"."""

    @abc.abstractmethod
    def nbytes(self, name: str) -> int:
        """The bytes of a tensor in the files."""

    @abc.abstractmethod
    def prefetch(self, groups: Sequence[Sequence[str]]) -> None:
        """Reads tensors at once that numbers() and packed() are asked for next; those of a group
        become one weight. What an earlier call read is given up."""

    @abc.abstractmethod
    def numbers(self, name: str, dtype: str) -> Array:
        """The numbers of a tensor, made of its format."""

    def packed(self, names: Sequence[str], dtype: str) -> Any:
        """One weight for kw.nn.linear() of tensors one above the other, in their format; None where
        they have no common one that it takes."""
        return None

    @abc.abstractmethod
    def read_into(self, arrays: Mapping[str, Array]) -> None:
        """Reads tensors into arrays of their shapes and dtypes."""


class SafeTensorsFiles(Tensors):
    """One or several safetensors files."""

    def __init__(self, source: str, files: Mapping[str, SafeTensors]) -> None:
        self.source, self.files = source, dict(files)
        self._held: dict[str, Array] = {}

    def names(self) -> list[str]:
        return list(self.files)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.files[name].shape(name)

    def dtype(self, name: str) -> str:
        return self.files[name].dtype(name)

    def nbytes(self, name: str) -> int:
        return self.files[name].nbytes(name)

    def prefetch(self, groups: Sequence[Sequence[str]]) -> None:
        self._held = {}
        parts = {name: self.files[name]._new_part(name) for group in groups for name in group}
        read_parts(list(parts.values()))
        self._held = {name: part.array for name, part in parts.items()}

    def read(self, name: str) -> Array:
        """A tensor as it is in the file."""
        held = self._held.pop(name, None)
        return self.files[name][name] if held is None else held

    def numbers(self, name: str, dtype: str) -> Array:
        return self.read(name).astype(dtype)

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        read_parts([self.files[name]._part_of(name, array) for name, array in arrays.items()])


class GgufTensors(Tensors):
    """The arrays of a GGUF file but those that its config is made of."""

    _CONFIG = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")

    def __init__(self, source: str, file: Gguf) -> None:
        self.source, self._file = source, file
        self._held: dict[str, Array] = {}
        self._joined: dict[tuple[str, ...], Array] = {}

    def names(self) -> list[str]:
        return [name for name in self._file if name not in self._CONFIG]

    def shape(self, name: str) -> tuple[int, ...]:
        return self._file.shape(name)

    def dtype(self, name: str) -> str:
        return self._file.format(name)

    def nbytes(self, name: str) -> int:
        return self._file.nbytes(name)

    def prefetch(self, groups: Sequence[Sequence[str]]) -> None:
        self._held, self._joined = {}, {}
        parts = []
        for group in groups:
            if self._are_blocks(group):
                self._joined[tuple(group)], made = self._file._joined_parts(group)
            else:
                made = [self._file._new_part(name) for name in group]
            self._held |= {name: part.array for name, part in zip(group, made, strict=True)}
            parts += made
        read_parts(parts)

    def numbers(self, name: str, dtype: str) -> Array:
        held = self._held.pop(name, None)
        return self._file._numbers_of(name, self._file[name] if held is None else held, dtype)

    def packed(self, names: Sequence[str], dtype: str) -> Any:
        if not self._are_blocks(names):
            return None
        whole = self._joined.pop(tuple(names), None)
        held = [self._held.pop(name, None) for name in names]
        if whole is None:
            blocks = [self._file[n] if b is None else b for n, b in zip(names, held, strict=True)]
            whole = blocks[0] if len(blocks) == 1 else kw.concat(blocks, axis=0)
        format = self._file.format(names[0])
        return kw.nn.quant.pack(split_mxfp4(whole) if format == "mxfp4" else whole, format)

    def _are_blocks(self, names: Sequence[str]) -> bool:
        """Whether tensors are matrices of blocks of one format, which kw.nn.quant.pack() takes."""
        formats = {self._file.format(name) for name in names}
        return (
            len(formats) == 1
            and formats <= set(kw.nn.quant.formats())
            and all(len(self._file.shape(name)) == 2 for name in names)
        )

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        self._file.read_into(arrays)


class JoinedLatent(GgufTensors):
    """The arrays of a file of DeepSeek-V2, which keeps the way from the latent vector to keys apart
    from that to values, and by heads. Here both are "attn_kv_b", as in older files."""

    _KEYS, _VALUES, _BOTH = "attn_k_b.weight", "attn_v_b.weight", "attn_kv_b.weight"

    def names(self) -> list[str]:
        found = super().names()
        return [name.replace(self._KEYS, self._BOTH) for name in found if not self._is_second(name)]

    def _is_second(self, name: str) -> bool:
        return name.replace(self._VALUES, self._KEYS) in self._file and name.endswith(self._VALUES)

    def _halves(self, name: str) -> tuple[str, str] | None:
        """The keys' and the values' array of a joined one."""
        if name in self._file:
            return None
        return name.replace(self._BOTH, self._KEYS), name.replace(self._BOTH, self._VALUES)

    def shape(self, name: str) -> tuple[int, ...]:
        halves = self._halves(name)
        if halves is None:
            return super().shape(name)
        keys, values = (self._three(each) for each in halves)
        if keys[0] != values[0] or keys[1] != values[2]:
            raise ModelError(f"{self.source}: {halves[0]} is {keys}, and {halves[1]} {values}")
        return keys[0] * (keys[2] + values[1]), keys[1]

    def _three(self, name: str) -> tuple[int, ...]:
        shape = self._file.shape(name) if name in self._file else ()
        if len(shape) != 3:
            raise ModelError(f"{self.source}: {name} has three axes, got the shape {shape}")
        return shape

    def dtype(self, name: str) -> str:
        return super().dtype(name) if self._halves(name) is None else "heads of keys and values"

    def nbytes(self, name: str) -> int:
        halves = self._halves(name)
        return sum(self._file.nbytes(each) for each in halves or (name,))

    def prefetch(self, groups: Sequence[Sequence[str]]) -> None:
        super().prefetch([
            [each for name in group for each in self._halves(name) or (name,)] for group in groups
        ])  # fmt: skip

    def numbers(self, name: str, dtype: str) -> Array:
        halves = self._halves(name)
        if halves is None:
            return super().numbers(name, dtype)
        keys, values = (super(JoinedLatent, self).numbers(each, dtype) for each in halves)
        return kw.concat([keys.mT, values], axis=1).reshape(self.shape(name))

    def packed(self, names: Sequence[str], dtype: str) -> Any:
        joined = any(self._halves(name) is not None for name in names)
        return None if joined else super().packed(names, dtype)


@contextlib.contextmanager
def opened_folder(folder: str, device: Any) -> Iterator[SafeTensorsFiles]:
    """The tensors of a folder: model.safetensors, or the parts that its index names. Raises
    ModelError where there are none, StoreError for damaged ones."""
    index, single = os.path.join(folder, _INDEX), os.path.join(folder, _SINGLE)
    with contextlib.ExitStack() as stack:
        if os.path.exists(index):
            parts = index_parts(index)
            names = list(dict.fromkeys(parts.values()))
            missing = [each for each in names if not os.path.exists(os.path.join(folder, each))]
            if missing:
                raise ModelError(f"{index} names files that are missing: {', '.join(missing)}")
            files = {
                each: stack.enter_context(SafeTensors(os.path.join(folder, each), device=device))
                for each in names
            }
            for name, part in parts.items():
                if name not in files[part]:
                    raise StoreError(f"{index} says that {part} has {name!r}, which it has not")
            yield SafeTensorsFiles(folder, {name: files[part] for name, part in parts.items()})
        elif os.path.exists(single):
            file = stack.enter_context(SafeTensors(single, device=device))
            yield SafeTensorsFiles(single, dict.fromkeys(file, file))
        else:
            names = sorted(os.listdir(folder))
            why = "a config without weights"
            for name in names:
                if name.endswith((".bin", ".pt", ".pth")):
                    why = f"weights as {name} are not read, save them as safetensors"
            for name in names:
                if name.endswith(".safetensors"):
                    why = f"of {name} and others only the index tells which tensors they have"
            raise ModelError(f"{folder} has neither {_SINGLE} nor {_INDEX}: {why}")
