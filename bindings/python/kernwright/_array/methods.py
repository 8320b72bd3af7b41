"""Methods of Array that are easier said in Python; imported when one of them is first called."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from kernwright._array import elementwise, functions
from kernwright._array.creation import HOST_TYPES, asarray, full, read_or_stacked
from kernwright._array.host_values import checked_values
from kernwright._core import Array, _adopt, _from_numpy
from kernwright.errors import ArgumentError, InvalidArgument

# Arrays with more elements than this are shown by their edges.
_SHOWN = 1000
_EDGE = 3
_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def item(x: Array, function: str = "item") -> Any:
    """The only element as a Python number, for `function` of it."""
    if x.size != 1:
        raise InvalidArgument(
            f"{function}() of an array of shape {x.shape}: it has {x.size} elements, not one; "
            "take one of them, as in x[0], or all as x.numpy()"
        )
    return x.numpy().reshape(()).item()


def item_at(x: Array, *args: Any) -> Any:
    """The only element, that at a position row by row, or that at one position for each axis, as a
    Python number."""
    if not args:
        return item(x)
    position = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if len(position) == 1:
        return item(x.reshape(-1)[operator.index(position[0])])
    if len(position) != x.ndim:
        raise InvalidArgument(
            f"item() takes one position, or one for each of {x.ndim} axes, got {len(position)}"
        )
    return item(x[tuple(operator.index(at) for at in position)])


def truth(x: Array) -> bool:
    """NumPy's rule: only one element is true or false."""
    if x.size != 1:
        raise InvalidArgument(
            f"the truth value of an array of shape {x.shape} is ambiguous: it has {x.size} "
            "elements; ask kw.any(x), kw.all(x) or x.size"
        )
    return bool(item(x))


def namespace(api_version: str | None) -> Any:
    """The namespace that the array API standard asks an array for."""
    import kernwright

    if api_version is not None and api_version not in _API_VERSIONS:
        raise InvalidArgument(
            f"the array API of {api_version!r} is not known: {', '.join(_API_VERSIONS)}"
        )
    return kernwright


def as_complex(x: Array) -> complex:
    return complex(item(x, "complex"))


def as_index(x: Array) -> int:
    if x.dtype.kind not in "iu":
        raise ArgumentError(f"only arrays of integers are indices, not of {x.dtype}")
    return int(item(x))


def represent(x: Array) -> str:
    try:
        device = x.device
    except InvalidArgument:  # a scheduler keeps its content, which is on the host now
        return f"kw.Array(not on a device, shape={x.shape}, dtype={x.dtype})"
    values = x.numpy() if x.size <= _SHOWN else _edges(x)
    threshold = _SHOWN if x.size <= _SHOWN else 0
    prefix = "kw.Array("
    text = np.array2string(
        values, threshold=threshold, edgeitems=_EDGE, separator=", ", prefix=prefix
    )
    shape = f", shape={x.shape}" if x.size > _SHOWN or x.size == 0 else ""
    return f"{prefix}{text}{shape}, dtype={x.dtype}, device={device})"


def _edges(x: Array) -> np.ndarray[Any, Any]:
    """A small host array that NumPy abbreviates to the same text as the whole one."""
    parts = [x]
    for axis, extent in enumerate(x.shape):
        if extent > 2 * _EDGE + 1:
            front: Any = (slice(None),) * axis
            parts = [p[(*front, s)] for p in parts for s in (slice(_EDGE + 1), slice(-_EDGE, None))]
    values = [part.numpy() for part in parts]
    for axis in reversed(range(x.ndim)):
        if x.shape[axis] > 2 * _EDGE + 1:
            values = [
                np.concatenate(pair, axis) for pair in zip(values[::2], values[1::2], strict=True)
            ]
    return values[0]


def assign(target: Array, value: Any) -> None:
    """target[...] = value: arrays and numbers, broadcast to the shape of `target`. Leading axes of
    one element are dropped, where the value has more axes."""
    if target.read_only:
        raise InvalidArgument("the array is read-only")
    if not isinstance(value, (Array, *HOST_TYPES)):
        adopted = _adopt(value)
        value = value if adopted is None else adopted
    if isinstance(value, Array):
        if value.device != target.device:
            raise ArgumentError(f"the value is on {value.device}, the array on {target.device}: "
                                "copy it with .to(device)")  # fmt: skip
        source = value if value.dtype == target.dtype else value.astype(target.dtype)
        target._assign(without_leading_ones(source, target.ndim)._broadcast(target.shape))
    elif np.isscalar(value):
        if target.is_contiguous:
            target._fill(value)
        else:
            target._assign(
                full((), value, target.dtype, device=target.device)._broadcast(target.shape)
            )
    else:
        _assign_values(target, value)


def _assign_values(target: Array, value: Any) -> None:
    """Values of the host, or a sequence with arrays of the device among its elements."""
    read = read_or_stacked(value, target.dtype, target.device)
    if isinstance(read, Array):
        assign(target, read)
        return
    values = without_leading_ones(checked_values(read, target.dtype), target.ndim)
    if not _fits(values.shape, target.shape):
        raise InvalidArgument(
            f"values of shape {values.shape} do not broadcast to shape {target.shape}"
        )
    values = np.broadcast_to(values, target.shape)
    if target.is_contiguous:
        target._assign_numpy(values)
    else:
        target._assign(_from_numpy(values, target.device))


def without_leading_ones(values: Any, ndim: int) -> Any:
    """A view with at most `ndim` axes, where those in front have one element."""
    while values.ndim > ndim and values.shape[0] == 1:
        values = values[0, ...]
    return values


def ravel(x: Array) -> Array:
    """One axis, row-major: a view where strides allow it."""
    return x.reshape(-1)


def flatten(x: Array) -> Array:
    """One axis, row-major: always a copy."""
    return x.copy().reshape(-1)


def fill(x: Array, value: Any) -> None:
    """Sets every element to a number, or to the only element of an array."""
    if not np.isscalar(value):
        value = asarray(value, device=x.device)
        if value.size != 1:
            raise InvalidArgument(
                f"fill() takes one value, got those of shape {value.shape}: assign them to x[...]"
            )
        value = value.reshape(())
    assign(x, value)


def tolist(x: Array) -> Any:
    """The elements as nested lists of Python numbers; a number where there is no axis."""
    return x.numpy().tolist()


def clip(x: Array, min: Any = None, max: Any = None, out: Array | None = None) -> Array:
    """kw.clip() with NumPy's order of arguments."""
    return elementwise.clip(x, min, max, out=out)


def round(x: Array, decimals: int = 0, out: Array | None = None) -> Array:
    """kw.round() with NumPy's order of arguments."""
    return functions.round(x, decimals, out=out)


def conj(x: Array) -> Array:
    """kw.conj() of the array."""
    return elementwise.conj(x)


conjugate = conj


def real(x: Array) -> Array:
    """A view of the real parts; of real numbers the array itself."""
    return _parts(x)[..., 0] if x.dtype.kind == "c" else x


def imag(x: Array) -> Array:
    """A view of the imaginary parts; of real numbers zeros."""
    return _parts(x)[..., 1] if x.dtype.kind == "c" else elementwise.imag(x)


def set_real(x: Array, value: Any) -> None:
    """x.real = value"""
    assign(real(x), value)


def set_imag(x: Array, value: Any) -> None:
    """x.imag = value"""
    if x.dtype.kind != "c":
        raise ArgumentError(f"an array of {x.dtype} has no imaginary parts to set")
    assign(imag(x), value)


def _parts(x: Array) -> Array:
    """A view of complex numbers with one axis more, of the two parts."""
    return x[..., None].view("float32" if x.dtype == np.complex64 else "float64")


def contains(x: Array, value: Any) -> bool:
    """Whether an element equals `value`."""
    equal = x == value if x.size else False
    return isinstance(equal, Array) and bool(equal.any())


def formatted(x: Array, spec: str) -> str:
    """One number as Python formats it; without a format all elements as str() has them."""
    if x.ndim == 0 or (spec and x.size == 1):
        return format(item(x, "format"), spec)
    if spec:
        raise ArgumentError(
            f"the format {spec!r} is for one number, and the array of shape {x.shape} has {x.size}:"
            ' format them one by one, as in [f"{value:' + spec + '}" for value in x.tolist()]'
        )
    return str(x)


def whole(x: Array, function: str) -> int:
    """math.floor(), math.ceil() or math.trunc() of the only element."""
    return int(getattr(math, function)(item(x, function)))


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(extent in (1, goal) for extent, goal in pairs)


def fill_parts(target: Array, value: Any) -> None:
    """Fills a contiguous array of complex128, whose parts no fill of the driver writes at once."""
    number = complex(value)
    parts = target.reshape(-1, 1).view("float64")
    assign(parts[:, 0], number.real)
    assign(parts[:, 1], number.imag)


def dlpack_on_host(x: Array, max_version: Any, copy: Any) -> Any:
    """A capsule of a host copy, for a consumer that asks for host memory by name."""
    if copy is False:
        raise BufferError("an array of a device reaches host memory only by a copy")
    values = x.numpy()
    return (
        values.__dlpack__() if max_version is None else values.__dlpack__(max_version=max_version)
    )


def rebuild(values: np.ndarray[Any, Any]) -> Array:
    """Unpickling: on the current device."""
    return _from_numpy(values, None)
