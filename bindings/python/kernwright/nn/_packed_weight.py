"""What nn.quant.pack() makes and nn.linear() takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["PackedWeight"]

_PARTS = 8


class PackedWeight:
    """Quantised weights of shape (n, k) in the layout of their product; made by nn.quant.pack().

    `format` is "int4" (from GPTQ or AWQ) or one of nn.quant.formats(), but for "gptq" and "awq";
    `arrays` are eight on one device, None where the format lacks one: codes, upper bits, scales,
    zeros of groups or scales of scales, of absmax in 8 bits table, scales and offset, and the order
    of columns that GPTQ's g_idx makes. `group` is how many numbers have a scale (int4, nf4, fp4),
    `tile` the rows and columns of a scale (fp8_block). It does not change, and may be pickled, as
    its arrays may be.

    >>> import kernwright as kw
    >>> packed = kw.nn.quant.pack(kw.zeros((64, 144), dtype="uint8"), "q4_k")
    >>> packed.shape, packed.format, packed.nbytes
    ((64, 256), 'q4_k', 9216)
    """

    __slots__ = ("_arrays", "_spec")
    _arrays: tuple[Array | None, ...]
    _spec: tuple[str, int, int, int, int, int]

    def __init__(
        self,
        format: str,
        shape: tuple[int, int],
        arrays: tuple[Array | None, ...],
        *,
        group: int = 0,
        tile: tuple[int, int] = (128, 128),
    ) -> None:
        if not isinstance(format, str):
            raise ArgumentError(f"format is a str, got {format!r}")
        if not isinstance(arrays, (tuple, list)) or len(arrays) != _PARTS:
            raise ArgumentError(f"arrays of packed weights are {_PARTS} in a tuple")
        if any(part is not None and not isinstance(part, Array) for part in arrays):
            raise ArgumentError("arrays of packed weights are kw.Arrays or None")
        count = _pair((group, 0), "group")[0]
        spec = (format, *_pair(shape, "shape"), count, *_pair(tile, "tile"))
        object.__setattr__(self, "_spec", spec)
        object.__setattr__(self, "_arrays", tuple(arrays))

    @property
    def format(self) -> str:
        """The format, "q4_k"."""
        return self._spec[0]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k), as of the weights of linear()."""
        return self._spec[1:3]

    @property
    def group(self) -> int:
        """How many numbers have a scale, of int4, nf4 and fp4; 0 where the format says it."""
        return self._spec[3]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns that have a scale, of fp8_block."""
        return self._spec[4:]

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays, None where the format lacks one."""
        return self._arrays

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(part.nbytes for part in self._arrays if part is not None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"packed weights do not change: {name} cannot be set")

    def __repr__(self) -> str:
        return f"PackedWeight({self.format}, shape={self.shape}, {self.nbytes} bytes)"

    def __reduce__(self) -> Any:
        return _made_again, (self._spec, self._arrays)


def _made_again(spec: tuple[Any, ...], arrays: tuple[Array | None, ...]) -> PackedWeight:
    format, n, k, group, *tile = spec
    return PackedWeight(format, (n, k), arrays, group=group, tile=(tile[0], tile[1]))


def _pair(value: Any, name: str) -> tuple[int, int]:
    """Two whole numbers that the extension takes."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ArgumentError(f"{name} of packed weights is two ints, got {value!r}")
    for number in value:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentError(f"{name} of packed weights is ints, got {value!r}")
        if not 0 <= number < 2**31:
            raise InvalidArgument(f"{name} of packed weights is from 0 to 2**31 - 1, not {value!r}")
    return int(value[0]), int(value[1])
