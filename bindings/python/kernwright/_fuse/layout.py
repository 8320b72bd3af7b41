"""How a kernel's operands lie in memory: few dimensions, packs, strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._fuse import types


class Operand:
    """An array of a kernel: `strides` has one number of elements for each axis of the space.

    `source` is (array index), ("temp", number) or ("out", index); `alignment` what its first
    element's address is a multiple of, in elements.
    """

    def __init__(self, name: str, dtype: Any, strides: list[int], source: Any, offset: int,
                 address: int, is_output: bool) -> None:  # fmt: skip
        self.name, self.dtype, self.strides = name, np.dtype(dtype), strides
        self.source, self.offset, self.is_output = source, offset, is_output
        self.size = self.dtype.itemsize
        self.address = address + offset * self.size
        self.dims: list[int] = []
        self.pack = 1

    @property
    def type(self) -> str:
        return types.element_type(self.dtype)

    def varies(self, dims: range) -> bool:
        return any(self.dims[d] for d in dims)

    def choose_pack(self, run: int) -> int:
        """How many neighbours one access may move, for runs of `run` along dimension 0."""
        pack: int = min(run, 16 // self.size)
        while pack > 1 and (
            self.address % (pack * self.size) or any(s % pack for s in self.dims[1:])
        ):
            pack //= 2
        self.pack = pack
        return pack


class Dims:
    """The dimensions of a kernel's space, merged where all operands allow it.

    Innermost first; the first `reduced` of them are those of the reduced axes.
    """

    def __init__(
        self, space: tuple[int, ...], axes: tuple[int, ...], operands: list[Operand]
    ) -> None:
        inner = self._merge([a for a in range(len(space)) if a in axes], space, operands)
        outer = self._merge([a for a in range(len(space)) if a not in axes], space, operands)
        self.extents = [e for e, _ in inner + outer]
        self.reduced = len(inner)
        for i, operand in enumerate(operands):
            operand.dims = [strides[i] for _, strides in inner + outer]

    @staticmethod
    def _merge(
        axes: list[int], space: tuple[int, ...], operands: list[Operand]
    ) -> list[tuple[int, list[int]]]:
        merged: list[tuple[int, list[int]]] = []
        for axis in reversed(axes):
            extent = space[axis]
            if extent == 1:
                continue
            strides = [o.strides[axis] for o in operands]
            if merged:
                inner, own = merged[-1]
                if all(s == t * inner for s, t in zip(strides, own, strict=True)):
                    merged[-1] = (inner * extent, own)
                    continue
            merged.append((extent, strides))
        return merged

    def struct(self, operands: list[Operand]) -> tuple[str, bytes]:
        """The text of the parameter that holds extents and strides, and its value."""
        count = max(len(self.extents), 1)
        varying = [o for o in operands if any(o.dims)]
        fields = [f"  long long {o.name}[{count}];\n" for o in varying]
        moved = [o for o in operands if o.offset]
        fields += [f"  long long {o.name}_start;\n" for o in moved]
        text = f"struct Layout {{\n  long long extent[{count}];\n{''.join(fields)}}};\n"
        rows = [self.extents, *(o.dims for o in varying)]
        numbers = [n for r in rows for n in r + [0] * (count - len(r))]
        return text, np.array(numbers + [o.offset for o in moved], np.int64).tobytes()


def run_length(operands: list[Operand], extent: int, divides: bool) -> int:
    """How many neighbours along dimension 0 a thread takes at a time: 16 bytes of the narrowest."""
    linear = [o for o in operands if o.dims and o.dims[0] == 1]
    if not linear:
        return 1
    run = min(16 // min(o.size for o in linear), 8 if max(o.size for o in linear) > 1 else 16)
    while run > 1 and ((divides and extent % run) or run > extent):
        run //= 2
    packs = [o.choose_pack(run) for o in linear]
    return run if max(packs) > 1 else 1


def offset(operand: Operand, first: int, coordinates: list[str]) -> str:
    """Text of where an element lies, from coordinates of the dimensions from `first` on."""
    terms = []
    for d, coordinate in enumerate(coordinates, first):
        stride = operand.dims[d]
        if stride == 1:
            terms.append(coordinate)
        elif stride:
            terms.append(f"{coordinate} * at.{operand.name}[{d}]")
    return " + ".join(terms)


def coordinates(
    dims: list[int], first: int, name: str, whole: str, index: str, run: str = ""
) -> tuple[list[str], list[str]]:
    """Lines that split `whole` into a coordinate of each of `dims`, and those coordinates.

    With `run`, `whole` counts runs of that many along the first.
    """
    lines, names = [], []
    rest = whole
    for i in range(len(dims)):
        last = i + 1 == len(dims)
        extent = (
            f"static_cast<{index}>(at.extent[{first + i}]){' / ' + run if run and not i else ''}"
        )
        value = rest if last else f"{rest} % ({extent})"
        times = f" * {run}" if run and not i else ""
        if value != whole or times:
            lines.append(f"const {index} {name}{i} = {value}{times};")
            names.append(f"{name}{i}")
        else:
            names.append(whole)
        if not last:
            lines.append(f"const {index} {name}{i}_rest = {rest} / ({extent});")
            rest = f"{name}{i}_rest"
    return lines, names
