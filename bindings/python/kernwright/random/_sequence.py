"""The sequence of a seed, and how a distribution draws from it."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kernwright import _core
from kernwright._array.operands import extents_of
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument
from kernwright.random._parameters import Parameter, spread

_T = TypeVar("_T")


class RandomSequence:
    """A seed and the place in its sequence: what every distribution of Generator draws from."""

    def __init__(
        self, seed: int | None = None, *, offset: int = 0, on_device: bool = False,
        device: Any = None,
    ) -> None:  # fmt: skip
        self._seed = whole(seed, "seed") if seed is not None else _fresh_seed()
        self._offset = whole(offset, "offset")
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

    def state(self) -> dict[str, int | None]:
        """The place in the sequence, for JSON: seed, offset, and the counter, which is read from
        the device.

        >>> kw.random.Generator(7).state()
        {'seed': 7, 'offset': 0, 'counter': None}
        """
        with self._lock:
            counter = None if self._counter is None else int(self._counter.item())
            return {"seed": self._seed, "offset": self._offset, "counter": counter}

    def restore(self, state: Mapping[str, int | None]) -> None:
        """Goes on where state() was taken. Raises InvalidArgument for a state with a counter on the
        device where this generator has none, and the other way round.

        >>> generator = kw.random.Generator(7)
        >>> state, x = generator.state(), generator.uniform(3)
        >>> generator.restore(state)
        >>> kw.all(generator.uniform(3) == x).item()
        True
        """
        counter = state["counter"]
        if (counter is None) != (self._counter is None):
            raise InvalidArgument(
                "a state with a counter on the device belongs to a generator with one, and no "
                f"other, got {dict(state)}"
            )
        with self._lock:
            self._seed, self._offset = (
                whole(state["seed"], "seed"),
                whole(state["offset"], "offset"),
            )
            if self._counter is not None:
                self._counter._fill(counter)

    def _begin(self, seed: int) -> None:
        """Begins anew with another seed."""
        made = whole(seed, "seed")
        with self._lock:
            self._seed, self._offset = made, 0

    def _move_on(self, count: int) -> int:
        """Where the next `count` numbers begin; they are taken."""
        with self._lock:
            offset = self._offset
            self._offset = (offset + count) % 2**64
        return offset

    def _draw(self, count: int, call: Callable[[int, int, _core.Array | None], _T]) -> _T:
        """call(seed, offset, counter), which uses `count` offsets."""
        if _core._is_recording():
            from kernwright._grad.draws import draw_of

            place = draw_of(self, count)
            if place is not None:
                return call(*place)
        if self._counter is None:
            return call(self._seed, self._move_on(count), None)
        with self._lock:
            result = call(self._seed, self._offset, self._counter)
            _core._advance_counter(self._counter, count)
        return result

    def _fill(
        self, fill: Callable[..., None], out: _core.Array, a: float, b: float = 0.0
    ) -> _core.Array:
        self._draw(out.size, lambda *state: fill(out, a, b, *state))
        return out

    def _parametric(
        self, kind: str, parameters: Sequence[Parameter], shape: Any, dtype: Any, out: Any,
        device: Any,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the distribution `kind`, whose parameters are numbers or arrays."""
        extents = None if shape == () else extents_of(shape)
        if out is not None:
            extents = self._target(shape, dtype, out, device).shape
        place = self._counter.device if device is None and self._counter is not None else device
        extents, values = spread(parameters, extents, place)
        if out is None and device is None:
            arrays = [value for value in values if isinstance(value, _core.Array)]
            device = arrays[0].device if arrays else None
        target = self._target(extents if out is None else shape, dtype, out, device)
        self._draw(
            target.size, lambda *state: _core._random_parametric(target, kind, values, *state)
        )
        return target

    def _target(self, shape: Any, dtype: Any, out: Any, device: Any) -> _core.Array:
        if isinstance(out, _core.Array) and _core._is_recording():
            from kernwright._grad.draws import overwrite

            overwrite(out)
        if out is None:
            if device is None and self._counter is not None:
                device = self._counter.device
            return _core.empty(shape, dtype, device=device)
        if not isinstance(out, _core.Array):
            raise ArgumentError(f"out is an array of a device, got {type(out).__name__}")
        if shape != () and extents_of(shape) != out.shape:
            raise InvalidArgument(f"shape {extents_of(shape)} is not that of out, {out.shape}")
        return out


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def whole(value: Any, name: str) -> int:
    """`value` as an int between 0 and 2**64 - 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is an int, got {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ArgumentRangeError(f"{name} lies between 0 and 2**64 - 1, got {number}")
    return number
