"""Inputs: arguments drawn from their properties."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from kernwright.errors import ArgumentError, InvalidArgument

_ARGUMENT = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*$")
_NAME = re.compile(r"[A-Za-z_]\w*$")

# Where tiles and blocks of kernels begin and end; each also less and more by one.
EDGES = (32, 128, 256, 512, 1024)

# Seeds are spread within so many; larger multiples of a step lose digits.
_PERIOD = 1 << 32

MOST = 65536  # the default bound of a size

Generator = numpy.random.Generator


def _normal(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    return rng.standard_normal(shape)


def _uniform(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    return rng.uniform(-1, 1, shape)


def _in_runs(rng: Generator, values: Any) -> Any:
    """The values, of which one fills each tile: warps and blocks have equal elements."""
    lengths = [edge for edge in EDGES if edge < values.size]
    if not lengths:
        return values
    length = int(rng.choice(lengths))
    flat = values.reshape(-1)
    return numpy.repeat(flat[::length], length)[: flat.size].reshape(values.shape)


def _vector_in_runs(rng: Generator, values: Any) -> Any:
    """Every second vector in runs. A matrix has rows of equal elements on request alone: many
    references divide by what they have."""
    return _in_runs(rng, values) if values.ndim == 1 and rng.random() < 0.5 else values


def _integers(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    return _vector_in_runs(rng, numpy.asarray(rng.integers(-8, 9, shape), numpy.float64))


def _magnitudes(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    """Numbers whose sizes differ by far."""
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5, shape)


def _structured(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    """Ones on the diagonal of a matrix; a vector that rises or falls, or has one sign."""
    if len(shape) >= 2:
        return numpy.broadcast_to(numpy.eye(shape[-2], shape[-1]), shape) * rng.integers(1, 5)
    values = rng.standard_normal(shape)
    if not shape:
        return values
    return (1 - turn % 2 * 2) * (numpy.sort if turn % 4 < 2 else numpy.abs)(values)


def _zeros(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    return _vector_in_runs(rng, numpy.asarray(rng.choice([0.0, -0.0, 1.0], shape)))


def _denormal(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    return rng.standard_normal(shape) * 1e-40


def _special(rng: Generator, shape: tuple[int, ...], turn: int) -> Any:
    """NaN of both signs and infinities among others."""
    values = rng.standard_normal(shape)
    special = [numpy.nan, -numpy.nan, numpy.inf, -numpy.inf]
    return numpy.where(rng.random(shape) < 0.1, rng.choice(special, shape), values)


def _integers_in_runs(rng: Generator, values: Any, turn: int) -> Any:
    """Half of the tiles are 0."""
    return _in_runs(rng, numpy.where(rng.random(values.shape) < 0.5, values, 0))


def _sorted_integers(rng: Generator, values: Any, turn: int) -> Any:
    ordered = numpy.sort(values, axis=-1)
    return ordered[..., ::-1] if turn % 2 else ordered


def _integers_with_one_sign(rng: Generator, values: Any, turn: int) -> Any:
    """Below and above 0 in turn; unsigned ones are as they were."""
    return -abs(values) if turn % 2 and values.dtype.kind == "i" else abs(values)


# The forms of arrays of integers, in turn.
INTEGER_FORMS: tuple[Callable[[Generator, Any, int], Any], ...] = (
    lambda rng, values, turn: values,
    _integers_in_runs,
    _sorted_integers,
    _integers_with_one_sign,
)


def _drawn_integers(
    rng: Generator, dtype: Any, shape: tuple[int, ...], most: int, number: int
) -> Any:
    """Up to `most` in size; `number` counts cases and turns."""
    most = min(most, int(numpy.iinfo(dtype).max))
    low = -most if dtype.kind == "i" else 0
    values = rng.integers(low, most, shape, endpoint=True).astype(dtype)
    if not shape:
        return values
    count = len(INTEGER_FORMS)
    made = INTEGER_FORMS[number % count](rng, values, number // count)
    return numpy.ascontiguousarray(made, dtype)


VALUES: dict[str, Callable[[Generator, tuple[int, ...], int], Any]] = {
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


Size = Callable[[float, float, float, int, int], int]


def _any_size(u: float, v: float, w: float, least: int, most: int) -> int:
    return least + int(u * (most - least + 1))


def _few(u: float, v: float, w: float, least: int, most: int) -> int:
    """Small sizes, where tiles are not full."""
    most = max(least, min(most, 256))
    return _any_size(v, u, w, least, most) if u < 0.5 else _scaled(v, max(least, 1), most)


def _scaled(u: float, least: int, most: int) -> int:
    """Each doubling is as likely as another."""
    return int(math.exp(math.log(least) + u * math.log((most + 1) / least)))


def _choice(u: float, values: Sequence[int]) -> int:
    return values[int(u * len(values))]


def _tiles(most: int) -> list[int]:
    return [edge for edge in EDGES if edge < most] or [most]


def _edge(u: float, v: float, w: float, least: int, most: int) -> int:
    return _choice(u, _tiles(most)) + _choice(v, (-1, 0, 1))


def _mostly_large_tile(u: float, most: int) -> int:
    """The largest, which is several of the small ones, the one before it, or any."""
    tiles = _tiles(most)
    if u < 0.8:
        return tiles[-1 if u < 0.6 or len(tiles) == 1 else -2]
    return _choice(5 * (u - 0.8), tiles)


def _count(u: float, tile: int, most: int) -> int:
    """Of tiles in a size: few, or any number."""
    many = max(1, most // max(tile, 1))
    return _scaled(2 * u, 1, many) if u < 0.5 else 1 + int((2 * u - 1) * many)


def _whole_tiles(u: float, v: float, w: float, least: int, most: int) -> int:
    """Powers of two, and multiples of tiles."""
    if u < 0.5:
        return 1 << int(v * max(most, 1).bit_length())
    tile = _mostly_large_tile(w, most)
    return tile * _count(v, tile, most)


def _beside_tiles(u: float, v: float, w: float, least: int, most: int) -> int:
    """Less or more than several tiles: by one, by little, by any part of a tile."""
    tile = _mostly_large_tile(v, most)
    little = max(2, tile // 32)
    kind = int(6 * u)
    part = 6 * u - kind
    offset = (1, 2 + int(part * (little - 1)), _scaled(part, little, max(little, tile - 1)))[
        kind // 2
    ]
    return tile * _count(w, tile, most) + (offset if kind % 2 else -offset)


# The sizes of a case by its number, in turn; cases 0 and 1 have the largest and the smallest.
SIZES: tuple[Size, ...] = (
    _any_size, _few, _edge, _any_size, _few, _whole_tiles, _beside_tiles, _beside_tiles,
)  # fmt: skip


def _steps(count: int) -> list[float]:
    """Roberts' sequence of `count` dimensions: multiples of these numbers, modulo 1, are spread
    evenly, few of them as well as many."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (count + 1))
    return [ratio**-place for place in range(1, count + 1)]


class Inputs:
    """A task's inputs from properties: ``Inputs(x="float32[n]", y="float32[n]", n="size")``.

    One keyword for each parameter, in the kernel's order: ``"float32[n, m]"`` is an array,
    ``"size"`` an int that arrays are measured by, ``"float32"`` or ``"int32"`` a number, a number
    is itself. `most` bounds each size (or ``{"n": 4096}``). Case 0 has the largest sizes, 1 the
    smallest (`least`), then come sizes around the edges of tiles and blocks, small ones, powers of
    two, multiples of tiles, a little more and less than those, and any.

    `values` names what floats are like, in turn: normal, uniform, integers, magnitudes, structured,
    zeros (the usual ones), denormal, special (NaN and infinities). Some vectors have whole tiles
    of equal elements. Integers are at most `most_integer` in size; their arrays are any, have
    tiles of equal elements, are sorted, or have one sign, in turn.

    An object of this class is a function of a seed and a case, as kw.Task takes it. Seed 2k + 1
    draws what 2k draws, but for a quarter of each array: a kernel that knows inputs by some of
    their elements is wrong there. The seeds 2k, 2k + 2, 2k + 4 and so on spread their sizes
    evenly, and take the next of `values` each.

    >>> inputs = kw.Inputs(x="float32[n]", n="size", most=1000)
    >>> x, n = inputs(0, 0)    # seed 0, case 0
    >>> x.shape, n
    ((1000,), 1000)
    """

    def __init__(
        self,
        *,
        most: int | dict[str, int] = MOST,
        least: int = 1,
        values: Iterable[str] = USUAL,
        most_integer: int = 100,
        **arguments: Any,
    ) -> None:
        self._values = [self._known(word) for word in values] or [_normal]
        self._least = _limit("least", least)
        self._most_integer = _limit("most_integer", most_integer, bits=63)
        self._arguments = [(name, *self._parsed(name, spec)) for name, spec in arguments.items()]
        sizes = [name for name, kind, _ in self._arguments if kind == "size"]
        self._most = _size_limits(most, sizes)
        self._steps = numpy.reshape(_steps(3 * len(sizes)), (-1, 3))
        for name, _, shape in self._arguments:
            for extent in shape or ():
                if isinstance(extent, str) and extent not in sizes:
                    raise InvalidArgument(
                        f"the size {extent} of {name} is none of the arguments that are "
                        f'"size": {", ".join(sizes) or "there is none"}'
                    )

    @staticmethod
    def _known(word: str) -> Callable[[Generator, tuple[int, ...], int], Any]:
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

    def _size(self, place: int, name: str, seed: int, case: int) -> int:
        """Of the argument at `place` among those that are "size"."""
        most = self._most[name]
        least = min(self._least, most)
        if case < 2:
            return least if case else most
        begin = numpy.random.default_rng([case, place]).random(3)
        u, v, w = ((begin + (seed // 2 % _PERIOD) * self._steps[place]) % 1).tolist()
        return max(least, min(most, SIZES[case % len(SIZES)](u, v, w, least, most)))

    def _array(
        self, rng: Generator, dtype: Any, shape: tuple[int, ...], case: int, turn: int
    ) -> Any:
        if dtype.kind == "b":
            return _vector_in_runs(rng, numpy.asarray(rng.integers(0, 2, shape)).astype(dtype))
        if dtype.kind in "iu":
            return _drawn_integers(rng, dtype, shape, self._most_integer, case + turn)
        draw = self._values[(case + turn) % len(self._values)]
        made = numpy.asarray(draw(rng, shape, turn))
        if dtype.kind == "c":
            made = made + 1j * numpy.asarray(draw(rng, shape, turn))
        with numpy.errstate(over="ignore", invalid="ignore"):
            return made.astype(dtype)

    def _with_another_part(self, rng: Generator, array: Any, case: int, turn: int) -> Any:
        """A quarter of the elements is drawn anew, neither the first, the middle nor the last one;
        of a few all are."""
        if (
            self._values[(case + turn) % len(self._values)] is _structured
            and array.dtype.kind in "fcV"
        ):
            return array
        count = array.size
        begin, end = 0, count
        if count >= 8:
            half = count // 2 if rng.random() < 0.5 else 0
            begin = half + 1 + int(rng.integers(0, count // 4 - 1))
            end = begin + count // 4
        array.reshape(-1)[begin:end] = self._array(rng, array.dtype, (end - begin,), case, turn)
        return array

    def __call__(self, seed: int, case: int) -> tuple[Any, ...]:
        rng = numpy.random.default_rng([seed - seed % 2, case])
        another = numpy.random.default_rng([seed, case]) if seed % 2 else None
        names = [name for name, kind, _ in self._arguments if isinstance(kind, str)]
        sizes = {name: self._size(place, name, seed, case) for place, name in enumerate(names)}
        turn = seed // 2
        made: list[Any] = []
        for name, kind, shape in self._arguments:
            if isinstance(kind, str):
                made.append(sizes[name])
            elif not isinstance(kind, numpy.dtype):
                made.append(kind)
            elif shape is None:
                made.append(self._array(rng, kind, (), case, turn)[()])
            else:
                extents = tuple(sizes[e] if isinstance(e, str) else e for e in shape)
                array = self._array(rng, kind, extents, case, turn)
                if another:
                    array = self._with_another_part(another, array, case, turn)
                made.append(array)
        return tuple(made)

    @property
    def names(self) -> list[str]:
        """Those of the arguments, in their order."""
        return [name for name, _, _ in self._arguments]

    def __repr__(self) -> str:
        return f"Inputs({', '.join(name for name, _, _ in self._arguments)})"


def _limit(name: str, value: Any, bits: int = 31) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}= is an int, got {value!r}") from None
    if not 0 <= number < 1 << bits:
        raise InvalidArgument(f"{name}= is between 0 and 2**{bits} - 1, got {number}")
    return number


def _size_limits(most: Any, sizes: list[str]) -> dict[str, int]:
    """The largest value of each size."""
    if not isinstance(most, Mapping):
        return dict.fromkeys(sizes, _limit("most", most))
    for name in most:
        if name not in sizes:
            raise InvalidArgument(
                f'most= has {name!r}, which is none of the arguments that are "size": '
                f"{', '.join(sizes) or 'there is none'}"
            )
    return {name: _limit("most", most.get(name, MOST)) for name in sizes}


def _dtype(name: str, what: str) -> numpy.dtype[Any]:
    from kernwright import _core

    try:
        dtype: numpy.dtype[Any] = numpy.dtype(_core._dtype(name))
    except Exception as error:
        raise InvalidArgument(f"{what}: there is no dtype {name}") from error
    return dtype
