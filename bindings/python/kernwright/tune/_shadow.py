"""Shadow buffers: what a kernel writes, twice, so that a second kernel can run beside the first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright.errors import Error


class NotShadowed(Exception):
    """Why these arguments have no shadows."""


def _span(array: _core.Array) -> tuple[int, int]:
    return array.ptr, array.ptr + array.nbytes


def _array(argument: Any) -> _core.Array | None:
    """The argument as an array over the same memory; None for what is none."""
    if isinstance(argument, _core.Array):
        return argument
    if hasattr(argument, "__cuda_array_interface__") or hasattr(argument, "__dlpack__"):
        return asarray(argument, copy=False)
    return None


class Shadow:
    """Copies of what a kernel's arguments write, made on the current stream when it is made.

    `arguments` are those of the launch with the copies in place; `written` the originals. Throws
    NotShadowed for raw pointers, host arrays and arrays that overlap in part, and beyond `limit`
    bytes.
    """

    def __init__(self, parameters: Sequence[Any], arguments: Sequence[Any], limit: int) -> None:
        self.arguments = list(arguments)
        self.written: list[_core.Array] = []
        self.copies: list[_core.Array] = []
        places: list[tuple[int, _core.Array, bool]] = []
        for place, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            if parameter.kind != "pointer" or argument is None:
                continue
            array = _array(argument)
            if array is not None:
                places.append((place, array, not parameter.const))
            elif not parameter.const:
                raise NotShadowed(f"the argument {parameter.name} is no array of the device")
        bytes_needed = sum(2 * array.nbytes for _, array, writes in places if writes)
        if bytes_needed > limit:
            raise NotShadowed(f"shadows of {bytes_needed} bytes are above shadow_bytes={limit}")
        self._copy(places)

    def _copy(self, places: list[tuple[int, _core.Array, bool]]) -> None:
        made: dict[tuple[int, int], _core.Array] = {}
        for _, array, writes in places:
            if writes and _span(array) not in made:
                made[_span(array)] = array.copy()
                self.written.append(array)
                self.copies.append(made[_span(array)])
        spans = list(made)
        for place, array, _ in places:
            low, high = _span(array)
            if (low, high) in made:
                copy = made[(low, high)]
                same = copy.dtype == array.dtype and copy.shape == array.shape
                self.arguments[place] = copy if same else copy.view(array.dtype)
            elif any(low < end and begin < high for begin, end in spans):
                raise NotShadowed("arguments overlap in part")
        for i, (low, high) in enumerate(spans):
            if any(low < end and begin < high for begin, end in spans[:i]):
                raise NotShadowed("arguments overlap in part")


def _values(array: _core.Array) -> np.ndarray[Any, Any]:
    values = array.numpy()
    if values.dtype.kind in "biufc":
        return values
    try:
        return values.astype(np.float64)  # bfloat16 and its kin
    except (TypeError, ValueError):
        return values.view(np.uint8)


def difference(
    expected: Sequence[_core.Array], found: Sequence[_core.Array], rtol: float, atol: float
) -> str:
    """The first difference between arrays, empty for none. Waits on the current stream."""
    for number, (a, b) in enumerate(zip(map(_values, expected), map(_values, found), strict=True)):
        exact = a.dtype.kind not in "fc"
        same = a == b if exact else np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True)
        if not np.all(same):
            at = np.unravel_index(int(np.argmin(same)), same.shape)
            return (
                f"written array {number} differs at {tuple(int(i) for i in at)}: {b[at]!r}, where "
                f"the incumbent gives {a[at]!r}"
            )
    return ""


class Comparison:
    """difference() on a thread and a stream of its own, behind what the current stream holds."""

    def __init__(
        self,
        expected: Sequence[_core.Array],
        found: Sequence[_core.Array],
        tolerances: tuple[float, float],
        clock: Callable[[], float],
    ) -> None:
        self.result: str | None = None  # while it runs
        self.cost = 0.0
        device = _core.current_device()
        event = _core.current_stream().record()

        def compare() -> None:
            begin = clock()
            try:
                with _core.Stream(device=device) as stream:
                    stream.wait(event)
                    found_difference = difference(expected, found, *tolerances)
            except Error as error:
                found_difference = f"the outputs cannot be compared: {error}"
            self.cost = clock() - begin
            self.result = found_difference

        threading.Thread(target=compare, name="kernwright-online-compare", daemon=True).start()
