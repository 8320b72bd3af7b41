"""Arguments of the array library's functions: arrays, positions, axes, element types."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kernwright._array.creation import HOST_TYPES, full, read_or_stacked
from kernwright._array.host_values import checked_values, kind_of
from kernwright._core import (
    Array,
    _adopt,
    _elementwise,
    _from_numpy,
    _result_type,
    current_stream,
)
from kernwright.errors import ArgumentError, AxisError, InvalidArgument


def device_array(value: Any, name: str = "x") -> Array:
    """An array of ours, or a view of another library's device array."""
    if isinstance(value, Array):
        return value
    adopted = None if isinstance(value, HOST_TYPES) else _adopt(value)
    if adopted is None:
        raise ArgumentError(
            f"{name} is of type {type(value).__name__}, and must be an array of a device: copy "
            "host data there with kernwright.asarray()"
        )
    return adopted


def index_array(value: Any, near: Array, name: str = "indices") -> Array:
    """Positions on the device of `near`; host integers and sequences of them are copied there."""
    if isinstance(value, Array):
        found = value
    else:
        adopted = None if isinstance(value, HOST_TYPES) else _adopt(value)
        found = _from_numpy(host_index(value), near.device) if adopted is None else adopted
    if found.dtype.kind not in "iu":
        raise ArgumentError(
            f'{name} are integers, got {found.dtype}: convert them with .astype("int64")'
        )
    return found


def host_index(value: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of integers or bools; an empty sequence has no type of its own."""
    values = np.asarray(value)
    if values.size == 0 and values.dtype.kind == "f" and not isinstance(value, np.ndarray):
        values = values.astype(np.int64)
    if values.dtype.kind not in "iub":
        raise ArgumentError(
            f"an array is indexed by ints, slices, Ellipsis, None, arrays of integers and masks, "
            f"got {_shown(value, values.dtype)}"
        )
    return values


def require_inside(positions: np.ndarray[Any, Any], extent: int, axis: int) -> None:
    """Raises IndexError for a position of the host beyond an end of its axis."""
    if positions.size == 0:
        return
    for bound in (int(positions.min()), int(positions.max())):
        if not -extent <= bound < extent:
            raise IndexError(f"index {bound} is out of bounds for axis {axis} with size {extent}")


def _shown(value: Any, dtype: np.dtype[Any]) -> str:
    """An array of a wrong dtype, or a value of a wrong type."""
    if isinstance(value, np.ndarray):
        return f"an array of {dtype}"
    text = repr(value)
    shown = f"{type(value).__name__} {text if len(text) <= 60 else text[:60] + '...'}"
    return f"{shown} of {dtype}" if isinstance(value, (list, tuple)) else shown


def values_like(value: Any, target: Array) -> Array:
    """`value` as an array of the type and on the device of `target`; numbers have no axis."""
    if not isinstance(value, HOST_TYPES):
        value = device_array(value, "the value")
    elif not np.isscalar(value):
        value = read_or_stacked(value, target.dtype, target.device)
    if isinstance(value, Array):
        if value.device != target.device:
            raise ArgumentError(f"the value is on {value.device}, the array on {target.device}: "
                                "copy it with .to(device)")  # fmt: skip
        return value if value.dtype == target.dtype else value.astype(target.dtype)
    if np.isscalar(value):
        return full((), value, target.dtype, device=target.device)
    return _from_numpy(checked_values(value, target.dtype), target.device)


def axis_of(axis: Any, ndim: int) -> int:
    """`axis` counted from the front."""
    if isinstance(axis, (bool, np.bool_)):
        raise ArgumentError(f"an axis is an int, got {axis}")
    found = operator.index(axis)
    if not -ndim <= found < ndim:
        raise AxisError(f"axis {found} is out of range for an array of {ndim} axes")
    return found % ndim


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """Distinct axes counted from the front; one may stand alone."""
    given = axes if isinstance(axes, Sequence) else (axes,)
    found = tuple(axis_of(axis, ndim) for axis in given)
    if len(set(found)) != len(found):
        raise InvalidArgument(f"axes {tuple(given)} name an axis twice")
    return found


def extents_of(shape: Any) -> tuple[int, ...]:
    """A shape given as an int or as ints."""
    if hasattr(shape, "__index__"):
        return (operator.index(shape),)
    return tuple(operator.index(extent) for extent in shape)


def holds_somewhere(x: Array, check: Callable[[], Array]) -> bool:
    """Whether a check of the values of `x` found something; waits for the device. A capture cannot
    wait: there nothing is computed, and the answer is False."""
    if current_stream(x.device).is_capturing:
        return False
    import kernwright as kw

    flags = check()
    return flags.size > 0 and bool(kw.any(flags).item())


def stored(result: Array, out: Any) -> Array:
    """`out` with the elements of `result`, by the rules of elementwise functions."""
    if not isinstance(out, Array):
        raise ArgumentError(f"out is an array of a device, not {kind_of(out)}")
    if out.shape != result.shape:
        raise InvalidArgument(
            f"Incompatible dimensions: out of shape {out.shape} for a result of shape "
            f"{result.shape}"
        )
    return _elementwise("where", (True, result, result), out)


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = " and ".join(str(shape) for shape in shapes)
        if all(len(set(extents) - {1}) <= 1 for extents in _columns(shapes)):
            raise InvalidArgument(
                f"shapes {listed} broadcast to an array that is too large: NumPy says {error}"
            ) from error
        raise InvalidArgument(
            f"Incompatible dimensions: shapes {listed} cannot be broadcast to one shape"
        ) from error


def _columns(shapes: Sequence[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """The extents of each axis, counted from the last; 1 where a shape has fewer."""
    return itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)


def common_dtype(arrays: Sequence[Array]) -> Any:
    """The type that all convert to, by NumPy's promotion."""
    return _result_type(*arrays)
