"""A seed with the place in its sequence, and all that is drawn from there."""

from __future__ import annotations

from math import prod
from typing import Any

from kernwright import _core
from kernwright._array.operands import extents_of
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.random._continuous import ContinuousDraws
from kernwright.random._discrete import DiscreteDraws
from kernwright.random._sequence import whole
from kernwright.random._vectors import VectorDraws
from kernwright.random._weights import weights_of

__all__ = ["Generator"]


class Generator(ContinuousDraws, DiscreteDraws, VectorDraws):
    """Draws random numbers from the sequence of a seed; each call goes on behind the last one.

    The numbers are those of Philox4x32-10. Element i of a call depends on the seed, on `offset`
    (the number of elements of earlier calls) and on i. It is the same on every device. Calls from
    several threads share no numbers. Without a seed the system gives one.

    In a graph the seed and offset of the capture are repeated by each replay; kw.captured() moves
    the generator on. With ``on_device=True`` the offset is kept in `counter`, one uint64 on the
    device. The kernels read it and move it on, so every replay of a graph draws new numbers. All
    calls must then be on one stream.

    >>> generator = kw.random.Generator(seed=1)
    >>> generator.integers(0, 6, shape=3).shape, generator.offset
    ((3,), 3)
    """

    @property
    def seed(self) -> int:
        """The seed of its sequence."""
        return self._seed

    @property
    def offset(self) -> int:
        """Elements drawn so far; of a generator with a counter, those before its counter."""
        return self._offset

    @property
    def counter(self) -> _core.Array | None:
        """The array of one uint64 that is added to the offset, with ``on_device=True``."""
        return self._counter

    def permutation(self, x: Any, dtype: Any = "int64", *, device: Any = None) -> _core.Array:
        """The numbers below `x`, an int, in random order; or the rows of the array `x` (along its
        first axis) in random order, as a copy.

        Up to 2048 of them every order has the same chance. Beyond, the order is a bijection of
        eight keyed rounds: always a permutation, one pass, no sort.
        """
        if _is_count(x):
            count = whole(x, "x")
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
        n = whole(a, "a") if rows is None else rows.shape[0]
        extents = extents_of(shape)
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

    def __repr__(self) -> str:
        place = "counter on the device" if self._counter is not None else f"offset {self._offset}"
        return f"<kw.random.Generator of seed {self._seed}, {place}>"


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
