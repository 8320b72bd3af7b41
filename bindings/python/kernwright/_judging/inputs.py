"""Inputs: arguments drawn from their properties."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from kernwright.errors import ArgumentError, InvalidArgument

_ARGUMENT = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*$")
_NAME = re.compile(r"[A-Za-z_]\w*$")

# Where tiles and blocks of kernels begin and end; each also less and more by one.
EDGES = (32, 128, 256, 512, 1024)

Generator = numpy.random.Generator


def _normal(rng: Generator, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape)


def _uniform(rng: Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-1, 1, shape)


def _integers(rng: Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(-8, 9, shape).astype(numpy.float64)


def _magnitudes(rng: Generator, shape: tuple[int, ...]) -> Any:
    """Numbers whose sizes differ by far."""
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5, shape)


def _structured(rng: Generator, shape: tuple[int, ...]) -> Any:
    """Ones on the diagonal of a matrix; a vector that rises or falls, or has one sign."""
    if len(shape) >= 2:
        return numpy.broadcast_to(numpy.eye(shape[-2], shape[-1]), shape) * rng.integers(1, 5)
    values = rng.standard_normal(shape)
    if not shape:
        return values
    sign = rng.choice([-1, 1])
    return sign * (numpy.sort(values) if rng.random() < 0.5 else numpy.abs(values))


def _zeros(rng: Generator, shape: tuple[int, ...]) -> Any:
    return rng.choice([0.0, -0.0, 1.0], shape)


def _denormal(rng: Generator, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape) * 1e-40


def _special(rng: Generator, shape: tuple[int, ...]) -> Any:
    """NaN and infinities among others."""
    values = rng.standard_normal(shape)
    return numpy.where(
        rng.random(shape) < 0.1, rng.choice([numpy.nan, numpy.inf, -numpy.inf], shape), values
    )


VALUES: dict[str, Callable[[Generator, tuple[int, ...]], Any]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "magnitudes": _magnitudes,
    "structured": _structured,
    "zeros": _zeros,
    "denormal": _denormal,
    "special": _special,
}
USUAL = ("normal", "uniform", "integers", "magnitudes", "structured", "zeros")


def _any_size(rng: Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def _few(rng: Generator, least: int, most: int) -> int:
    """Small sizes, where tiles are not full."""
    most = min(most, 256)
    if rng.random() < 0.5 or least >= most:
        return _any_size(rng, least, max(least, most))
    return _scaled(rng, max(least, 1), most)


def _scaled(rng: Generator, least: int, most: int) -> int:
    """Each doubling is as likely as another."""
    return int(math.exp(rng.uniform(math.log(least), math.log(most + 1))))


def _edge(rng: Generator, least: int, most: int) -> int:
    return _tile(rng, most) + int(rng.integers(-1, 2))


def _edge_or_any(rng: Generator, least: int, most: int) -> int:
    return (_edge if rng.random() < 0.5 else _any_size)(rng, least, most)


def _tile(rng: Generator, most: int) -> int:
    return int(rng.choice([edge for edge in EDGES if edge < most] or [most]))


def _whole_tiles(rng: Generator, least: int, most: int) -> int:
    """Powers of two, and multiples of tiles."""
    if rng.random() < 0.5:
        return 1 << int(rng.integers(0, max(most, 1).bit_length()))
    tile = _tile(rng, most)
    return tile * _scaled(rng, 1, max(1, most // max(tile, 1)))


def _beside_tiles(rng: Generator, least: int, most: int) -> int:
    """A little more or less than several tiles."""
    tile = _tile(rng, most)
    offset = 1 if rng.random() < 0.75 else _scaled(rng, 1, max(tile - 1, 1))
    count = int(rng.integers(1, max(1, most // max(tile, 1)) + 1))
    return tile * count + int(rng.choice([-1, 1])) * offset


# The sizes of a case by its number, in turn; cases 0 and 1 have the largest and the smallest.
SIZES = (_any_size, _few, _edge, _any_size, _few, _whole_tiles, _edge_or_any, _beside_tiles)


class Inputs:
    """A task's inputs from properties: ``Inputs(x="float32[n]", y="float32[n]", n="size")``.

    One keyword for each parameter, in the kernel's order: ``"float32[n, m]"`` is an array,
    ``"size"`` an int that arrays are measured by, ``"float32"`` or ``"int32"`` a number, a number
    is itself. `most` bounds each size (or ``{"n": 4096}``). Case 0 has the largest sizes, 1 the
    smallest (`least`), then come sizes around the edges of tiles and blocks, small ones, powers of
    two, multiples of tiles, a little more and less than those, and any.

    `values` names what floats are like, in turn: normal, uniform, integers, magnitudes, structured,
    zeros (the usual ones), denormal, special (NaN and infinities). Integers are at most
    `most_integer` in size.

    An object of this class is a function of a seed and a case, as kw.Task takes it. Seed 2k + 1
    draws what 2k draws, but for a quarter of each array: a kernel that knows inputs by some of
    their elements is wrong there.

    >>> inputs = kw.Inputs(x="float32[n]", n="size", most=1000)
    >>> x, n = inputs(0, 0)    # seed 0, case 0
    >>> x.shape, n
    ((1000,), 1000)
    """

    def __init__(
        self,
        *,
        most: int | dict[str, int] = 65536,
        least: int = 1,
        values: Iterable[str] = USUAL,
        most_integer: int = 100,
        **arguments: Any,
    ) -> None:
        self._values = [self._known(word) for word in values] or [_normal]
        self._most, self._least, self._most_integer = most, least, most_integer
        self._arguments = [(name, *self._parsed(name, spec)) for name, spec in arguments.items()]
        sizes = [name for name, kind, _ in self._arguments if kind == "size"]
        for name, _, shape in self._arguments:
            for extent in shape or ():
                if isinstance(extent, str) and extent not in sizes:
                    raise InvalidArgument(
                        f"the size {extent} of {name} is none of the arguments that are "
                        f'"size": {", ".join(sizes) or "there is none"}'
                    )

    @staticmethod
    def _known(word: str) -> Callable[[Generator, tuple[int, ...]], Any]:
        if word not in VALUES:
            raise InvalidArgument(f"values= are of {', '.join(VALUES)}, not {word!r}")
        return VALUES[word]

    @staticmethod
    def _parsed(name: str, spec: Any) -> tuple[Any, tuple[int | str, ...] | None]:
        if isinstance(spec, (int, float, numpy.generic)):
            return spec, None
        match = _ARGUMENT.match(spec) if isinstance(spec, str) else None
        if match is None:
            raise ArgumentError(
                f'{name}={spec!r}: an argument is "float32[n, m]", "float32", "size" or a number'
            )
        kind, inside = match.groups()
        if kind == "size" and inside is None:
            return kind, None
        dtype = _dtype(kind, f"{name}={spec!r}")
        if inside is None:
            return dtype, None
        extents: list[int | str] = []
        for extent in filter(None, (part.strip() for part in inside.split(","))):
            if not (extent.isdigit() or _NAME.match(extent)):
                raise InvalidArgument(f"{name}={spec!r}: {extent!r} is no size")
            extents.append(int(extent) if extent.isdigit() else extent)
        return dtype, tuple(extents)

    def _size(self, rng: Generator, name: str, case: int) -> int:
        most = self._most.get(name, 65536) if isinstance(self._most, dict) else self._most
        if case == 0:
            return most
        if case == 1:
            return min(self._least, most)
        drawn = SIZES[case % len(SIZES)](rng, min(self._least, most), most)
        return max(self._least, min(most, drawn))

    def _array(self, rng: Generator, dtype: Any, shape: tuple[int, ...], case: int) -> Any:
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            most = min(self._most_integer, int(numpy.iinfo(dtype).max))
            low = -most if dtype.kind == "i" else 0
            return rng.integers(low, most, shape, endpoint=True).astype(dtype)
        draw = self._values[case % len(self._values)]
        made = numpy.asarray(draw(rng, shape))
        if dtype.kind == "c":
            made = made + 1j * numpy.asarray(draw(rng, shape))
        with numpy.errstate(over="ignore", invalid="ignore"):
            return made.astype(dtype)

    def _with_another_part(self, rng: Generator, array: Any, case: int) -> Any:
        """A quarter of the elements is drawn anew, neither the first, the middle nor the last one;
        of a few all are."""
        if self._values[case % len(self._values)] is _structured and array.dtype.kind in "fcV":
            return array
        count = array.size
        begin, end = 0, count
        if count >= 8:
            half = count // 2 if rng.random() < 0.5 else 0
            begin = half + 1 + int(rng.integers(0, count // 4 - 1))
            end = begin + count // 4
        array.reshape(-1)[begin:end] = self._array(rng, array.dtype, (end - begin,), case)
        return array

    def __call__(self, seed: int, case: int) -> tuple[Any, ...]:
        rng = numpy.random.default_rng([seed - seed % 2, case])
        another = numpy.random.default_rng([seed, case]) if seed % 2 else None
        sizes = {
            name: self._size(rng, name, case)
            for name, kind, _ in self._arguments
            if isinstance(kind, str)
        }
        made: list[Any] = []
        for name, kind, shape in self._arguments:
            if isinstance(kind, str):
                made.append(sizes[name])
            elif not isinstance(kind, numpy.dtype):
                made.append(kind)
            elif shape is None:
                made.append(self._array(rng, kind, (), case)[()])
            else:
                extents = tuple(sizes[e] if isinstance(e, str) else e for e in shape)
                array = self._array(rng, kind, extents, case)
                made.append(self._with_another_part(another, array, case) if another else array)
        return tuple(made)

    @property
    def names(self) -> list[str]:
        """Those of the arguments, in their order."""
        return [name for name, _, _ in self._arguments]

    def __repr__(self) -> str:
        return f"Inputs({', '.join(name for name, _, _ in self._arguments)})"


def _dtype(name: str, what: str) -> numpy.dtype[Any]:
    from kernwright import _core

    try:
        dtype: numpy.dtype[Any] = numpy.dtype(_core._dtype(name))
    except Exception as error:
        raise InvalidArgument(f"{what}: there is no dtype {name}") from error
    return dtype
