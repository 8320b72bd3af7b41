"""A seed with the place in its sequence, and the distributions drawn from there."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

from kernwright import _core
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument
from kernwright.random._weights import weights_of

__all__ = ["Generator"]

_T = TypeVar("_T")


class Generator:
    """Draws random numbers from the sequence of a seed; each call goes on behind the last one.

    The numbers are those of Philox4x32-10. Element i of a call depends on the seed, on `offset`
    (the number of elements of earlier calls) and on i. It is the same on every device. Calls from
    several threads share no numbers. Without a seed the system gives one.

    In a graph the seed and offset of the capture are repeated by each replay. With
    ``on_device=True`` the offset is kept in `counter`, one uint64 on the device. The kernels read
    it and move it on, so every replay of a graph draws new numbers. All calls must then be on one
    stream.

    >>> generator = kw.random.Generator(seed=1)
    >>> generator.integers(0, 6, shape=3).shape, generator.offset
    ((3,), 3)
    """

    def __init__(
        self, seed: int | None = None, *, offset: int = 0, on_device: bool = False,
        device: Any = None,
    ) -> None:  # fmt: skip
        self._seed = _whole(seed, "seed") if seed is not None else _fresh_seed()
        self._offset = _whole(offset, "offset")
        self._lock = threading.Lock()
        self._counter: _core.Array | None = None
        if on_device:
            self._counter = _core.empty(1, "uint64", device=device)
            self._counter._fill(0)

    def __getstate__(self) -> tuple[int, int, _core.Array | None]:
        """A copy goes on where this one is, by itself."""
        with self._lock:
            counter = self._counter
            return self._seed, self._offset, None if counter is None else counter.copy()

    def __setstate__(self, state: tuple[int, int, _core.Array | None]) -> None:
        self._seed, self._offset, self._counter = state
        self._lock = threading.Lock()

    @property
    def seed(self) -> int:
        """The seed that it was made with."""
        return self._seed

    @property
    def offset(self) -> int:
        """Elements drawn so far; of a generator with a counter, those before its counter."""
        return self._offset

    @property
    def counter(self) -> _core.Array | None:
        """The array of one uint64 that is added to the offset, with ``on_device=True``."""
        return self._counter

    def _draw(self, count: int, call: Callable[[int, int, _core.Array | None], _T]) -> _T:
        """call(seed, offset, counter), which uses `count` offsets."""
        if self._counter is None:
            with self._lock:
                offset = self._offset
                self._offset = (offset + count) % 2**64
            return call(self._seed, offset, None)
        with self._lock:
            result = call(self._seed, self._offset, self._counter)
            _core._advance_counter(self._counter, count)
        return result

    def _fill(
        self, fill: Callable[..., None], out: _core.Array, a: float, b: float = 0.0
    ) -> _core.Array:
        self._draw(out.size, lambda *state: fill(out, a, b, *state))
        return out

    def uniform(
        self, shape: Any = (), dtype: Any = None, *, low: float = 0.0, high: float = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers from `low` up to and without `high`, of dtype float32 (the default), float64,
        float16 or bfloat16: low + u * (high - low), with u a multiple of 2 to the -24, -53, -11,
        -8. `out` is filled instead of a new array of `shape`."""
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_uniform, target, low, high)

    def normal(
        self, shape: Any = (), dtype: Any = None, *, mean: float = 0.0, std: float = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Normal numbers, by Box and Muller: up to 5.8 deviations from the mean in float32, 8.6 in
        float64. Raises InvalidArgument for a negative `std`."""
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_normal, target, mean, std)

    def exponential(
        self, shape: Any = (), dtype: Any = None, *, scale: float = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Exponential numbers of mean `scale`."""
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_exponential, target, scale)

    def gamma(
        self, alpha: float, shape: Any = (), dtype: Any = None, *, scale: float = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the gamma distribution of shape parameter `alpha` (above 0), mean
        alpha * scale, by Marsaglia and Tsang's rejection."""
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_gamma, target, alpha, scale)

    def bernoulli(
        self, p: float = 0.5, shape: Any = (), dtype: Any = "bool", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """True (1 in another dtype) with probability `p`, in steps of 2 to the -32."""
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_bernoulli, target, p)

    def integers(
        self, low: int, high: int | None = None, shape: Any = (), dtype: Any = "int64", *,
        endpoint: bool = False, out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Whole numbers from `low` up to and without `high` (with it: `endpoint`), from 0 up to
        `low` where `high` is left out, each with exactly the same chance."""
        first, last = _bounds(low, high, endpoint)
        target = self._target(shape, dtype, out, device)
        _require_inside(first, last, target)
        count = (last - first + 1) % 2**64
        self._draw(
            target.size,
            lambda *state: _core._random_integers(target, first % 2**64, count, *state),
        )
        return target

    def permutation(self, x: Any, dtype: Any = "int64", *, device: Any = None) -> _core.Array:
        """The numbers below `x`, an int, in random order; or the rows of the array `x` (along its
        first axis) in random order, as a copy.

        Up to 2048 of them every order has the same chance. Beyond, the order is a bijection of
        eight keyed rounds: always a permutation, one pass, no sort.
        """
        if _is_count(x):
            count = _whole(x, "x")
            return self._permutation(count, count, dtype, device)
        array = _rows(x, "x")
        order = self._permutation(array.shape[0], array.shape[0], "int64", array.device)
        return _core._rows_by_index(array, order)

    def shuffle(self, x: _core.Array) -> None:
        """Puts the rows of `x` (along its first axis) into random order, in place."""
        array = _rows(x, "x")
        array._assign(self.permutation(array))

    def choice(
        self, a: Any, shape: Any = (), replace: bool = True, p: Any = None, *, device: Any = None
    ) -> _core.Array:
        """Picks of the numbers below `a`, an int, as int64, or of the rows of the array `a`.

        `p`: the chances, a sequence of the host with the sum 1, or an array of the device. The
        latter is used as weights without a check. Without replacement, elements with the weight 0
        come last. ``replace=False`` draws nothing twice.
        """
        rows = None if _is_count(a) else _rows(a, "a")
        n = _whole(a, "a") if rows is None else rows.shape[0]
        extents = _extents(shape)
        count = prod(extents)
        if n == 0 and count > 0:
            raise InvalidArgument("cannot choose from nothing: a holds no element")
        place = device if rows is None else rows.device
        if p is not None:
            weights = weights_of(p, n, None if replace else count, place)
            picked = self._draw(
                max(n, count),
                lambda *state: _core._random_choice(weights, count, replace, *state),
            )
        elif replace:
            picked = self.integers(0, max(n, 1), count, device=place)
        else:
            picked = self._permutation(n, count, "int64", place)
        if rows is None:
            return picked.reshape(extents)
        return _core._rows_by_index(rows, picked).reshape((*extents, *rows.shape[1:]))

    def _permutation(self, n: int, count: int, dtype: Any, device: Any) -> _core.Array:
        return self._draw(
            max(n, 2),
            lambda seed, offset, counter: _core._random_permutation(
                n, count, dtype, seed, offset, counter, device
            ),
        )

    def _target(self, shape: Any, dtype: Any, out: Any, device: Any) -> _core.Array:
        if out is None:
            if device is None and self._counter is not None:
                device = self._counter.device
            return _core.empty(shape, dtype, device=device)
        if not isinstance(out, _core.Array):
            raise ArgumentError(f"out is an array of a device, got {type(out).__name__}")
        if shape != () and _extents(shape) != out.shape:
            raise InvalidArgument(f"shape {_extents(shape)} is not that of out, {out.shape}")
        return out

    def __repr__(self) -> str:
        place = "counter on the device" if self._counter is not None else f"offset {self._offset}"
        return f"<kw.random.Generator of seed {self._seed}, {place}>"


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _whole(value: Any, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is an int, got {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ArgumentRangeError(f"{name} lies between 0 and 2**64 - 1, got {number}")
    return number


def _is_count(value: Any) -> bool:
    return hasattr(value, "__index__") and getattr(value, "shape", ()) == ()


def _rows(value: Any, name: str) -> _core.Array:
    array = value if isinstance(value, _core.Array) else _core._adopt(value)
    if array is None:
        raise ArgumentError(
            f"{name} is an int or an array of a device, got {type(value).__name__}: copy host data "
            f"there with kernwright.asarray()"
        )
    if array.ndim == 0:
        raise InvalidArgument(f"{name} has no axis whose rows could be taken")
    return array


def _extents(shape: Any) -> tuple[int, ...]:
    if hasattr(shape, "__index__"):
        return (operator.index(shape),)
    return tuple(operator.index(extent) for extent in shape)


def _bounds(low: Any, high: Any, endpoint: bool) -> tuple[int, int]:
    if high is None:
        low, high = 0, low
    try:
        first, last = operator.index(low), operator.index(high) - (not endpoint)
    except TypeError:
        raise ArgumentError(f"low and high are ints, got {low!r} and {high!r}") from None
    if last < first:
        raise InvalidArgument(f"no whole number lies from {low} up to {high}")
    return first, last


def _require_inside(first: int, last: int, target: _core.Array) -> None:
    import numpy as np

    if target.dtype.kind not in "iu":
        raise InvalidArgument(f"random integers are of an integer dtype, not {target.dtype}")
    limits = np.iinfo(target.dtype)
    if first < limits.min or last > limits.max:
        raise ArgumentRangeError(
            f"{first} ... {last} do not fit {target.dtype} ({limits.min} ... {limits.max})"
        )
