"""Partitions, orders of several keys, and elements that conditions choose."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernwright._array.operands import axis_of, common_shape, device_array, index_array, stored
from kernwright._core import Array, _from_numpy
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "argpartition",
    "choose",
    "compress",
    "extract",
    "lexsort",
    "partition",
    "piecewise",
    "select",
]


def partition(x: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """`x` with the element at `kth` (an int, or several) where it would be in order along `axis`,
    none larger before it and none smaller behind it. All elements are in order, in fact: sort().

    InvalidArgument for a `kth` outside, ArgumentError for complex numbers.

    >>> kw.partition(kw.asarray([3, 9, 1, 5]), 1).numpy()
    array([1, 3, 5, 9])
    """
    import kernwright as kw

    array: Array = device_array(x)
    _check_kth(kth, array, axis, kind)
    return kw.sort(array, axis)


def argpartition(x: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """Where along `axis` the elements of partition() are: int64.

    >>> kw.argpartition(kw.asarray([3, 9, 1, 5]), 1).numpy()
    array([2, 0, 3, 1])
    """
    import kernwright as kw

    array: Array = device_array(x)
    _check_kth(kth, array, axis, kind)
    return kw.argsort(array, axis)


def _check_kth(kth: Any, x: Array, axis: int | None, kind: str) -> None:
    if kind != "introselect":
        raise InvalidArgument(f'kind is "introselect", got {kind!r:.60}')
    extent = x.size if axis is None else x.shape[axis_of(axis, x.ndim)]
    for one in kth if isinstance(kth, (list, tuple, np.ndarray)) else (kth,):
        at = operator.index(one)
        if not -extent <= at < extent:
            raise InvalidArgument(f"kth={at} is out of range for {extent} elements")


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that order by the last key, of equal ones by the key before it, and so on: int64
    of the shape of a key. `keys`: arrays of one shape, or an array whose first axis counts keys.

    >>> kw.lexsort([kw.asarray([2, 1, 0]), kw.asarray([5, 5, 1])]).numpy()
    array([2, 1, 0])
    """
    import kernwright as kw

    given = keys if isinstance(keys, (list, tuple)) else list(device_array(keys, "keys"))
    parts = [device_array(key, f"key {i}") for i, key in enumerate(given)]
    if not parts:
        raise InvalidArgument("lexsort() needs at least one key")
    if any(part.shape != parts[0].shape for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise InvalidArgument(f"Incompatible dimensions: keys of shapes {shapes}")
    axis_of(axis, parts[0].ndim)
    order = kw.argsort(parts[0], axis)
    for part in parts[1:]:
        again = kw.argsort(kw.take_along_axis(part, order, axis), axis)
        order = kw.take_along_axis(order, again, axis)
    return order


# ---- Conditions

_FUSED = 6  # pairs in one kernel


@functools.cache
def _choice(pairs: int) -> Any:
    from kernwright._fuse.elementwise import elementwise

    text = "last"
    for i in reversed(range(pairs)):
        text = f"where(c{i}, x{i}, {text})"
    return elementwise(f"y = {text}", name="select")


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """The element of the first choice whose condition is true, else `default`; all broadcast.

    Conditions are arrays of bools, choices and `default` arrays or numbers, one of them an array.
    The dtype is that of all choices together. InvalidArgument for lists of different lengths.

    >>> x = kw.asarray([1, 2, 3, 4])
    >>> kw.select([x > 3, x > 1], [x, -x]).numpy()
    array([ 0, -2, -3,  4])
    """
    import kernwright as kw

    if len(condlist) != len(choicelist) or not condlist:
        raise InvalidArgument(
            f"select() takes as many conditions as choices, one at least: {len(condlist)} and "
            f"{len(choicelist)}"
        )
    conditions = [device_array(c, f"condition {i}") for i, c in enumerate(condlist)]
    for i, condition in enumerate(conditions):
        if condition.dtype != bool:
            raise ArgumentError(f"condition {i} is an array of bools, got {condition.dtype}")
    dtype = kw.result_type(*choicelist, default)
    if dtype.kind == "c":
        made: Any = default
        for condition, choice in reversed(list(zip(conditions, choicelist, strict=True))):
            made = kw.where(condition, choice, made)
        return made.astype(dtype, copy=False)  # type: ignore[no-any-return]
    made = default
    for start in reversed(range(0, len(conditions), _FUSED)):
        part = slice(start, start + _FUSED)
        named: dict[str, Any] = {"last": made}
        for i, pair in enumerate(zip(conditions[part], choicelist[part], strict=True)):
            named[f"c{i}"], named[f"x{i}"] = pair
        made = _choice((len(named) - 1) // 2)(**named)
    return made.astype(dtype, copy=False)  # type: ignore[no-any-return]


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Array:
    """func(x, *args, **kwargs) of the last condition that is true; numbers stand for constants. One
    more function than conditions is for elsewhere, else 0. The dtype is that of `x`.

    Functions are called with all of `x`, and compute each element by itself, so that no count of
    elements is waited for. InvalidArgument for wrong numbers of functions.

    >>> x = kw.asarray([-2.0, 0.5, 3.0])
    >>> kw.piecewise(x, [x < 0, x > 1], [lambda x: -x, 1]).numpy()
    array([2., 0., 1.], dtype=float32)
    """
    import kernwright as kw

    array: Array = device_array(x)
    given = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if isinstance(condlist, Array) and condlist.ndim > array.ndim:
        given = list(condlist)
    conditions = [device_array(c, f"condition {i}") for i, c in enumerate(given)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise InvalidArgument(
            f"piecewise() with {len(conditions)} conditions takes as many functions, or one more, "
            f"got {len(funclist)}"
        )
    functions = list(funclist)
    elsewhere: Any = functions.pop() if len(functions) > len(conditions) else 0

    def value(function: Any) -> Any:
        return function(array, *args, **kwargs) if callable(function) else function

    result = value(elsewhere)
    result = (
        result.astype(array.dtype) if isinstance(result, Array) else kw.full_like(array, result)
    )
    for condition, function in zip(conditions, functions, strict=True):
        made = value(function)
        if isinstance(made, Array):
            made = made.astype(array.dtype, copy=False)
        result = kw.where(condition, made, result).astype(array.dtype, copy=False)
    return result


def compress(condition: Any, x: Any, axis: int | None = None, out: Array | None = None) -> Array:
    """The elements along `axis` (None: of all, flat) where `condition`, a vector that may be
    shorter and on the host, is true. Waits for their number. `out` takes the result.

    >>> kw.compress(kw.asarray([True, False, True]), kw.asarray([5, 6, 7])).numpy()
    array([5, 7])
    """
    import kernwright as kw

    array: Array = device_array(x)
    mask = _mask(condition, array)
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = axis_of(axis, array.ndim)
    if mask.ndim != 1 or mask.size > array.shape[at]:
        raise InvalidArgument(
            f"Incompatible dimensions: a condition of shape {mask.shape} for {array.shape[at]} "
            "elements"
        )
    return kw.take(array, kw.flatnonzero(mask), axis=at, out=out)


def _mask(condition: Any, near: Array) -> Array:
    """A condition, which may be on the host."""
    if isinstance(condition, (list, tuple, np.ndarray)):
        return _from_numpy(np.asarray(condition), near.device)
    mask: Array = device_array(condition, "condition")
    return mask


def extract(condition: Any, x: Any) -> Array:
    """The elements of `x`, flat, where `condition` of as many elements, which may be on the host,
    is not 0. Waits for their number.

    >>> x = kw.asarray([1, 5, 3])
    >>> kw.extract(x > 2, x).numpy()
    array([5, 3])
    """
    array: Array = device_array(x)
    return compress(_mask(condition, array).reshape(-1), array)


def choose(x: Any, choices: Any, out: Array | None = None, mode: str = "clip") -> Array:
    """The element of choices[x]: `x` holds integers, and is broadcast with all choices.

    An integer beyond an end takes the nearest choice with mode="clip", counts on at the other end
    with "wrap", and raises IndexError with "raise", which waits for the device. Choices may be
    numbers. `out` takes the result. InvalidArgument without a choice.

    >>> kw.choose(kw.asarray([0, 1, 0]), [kw.asarray([1, 2, 3]), kw.asarray([7, 8, 9])]).numpy()
    array([1, 8, 3])
    """
    import kernwright as kw

    array: Array = device_array(x)
    index = index_array(array, array, "x")
    given = choices if isinstance(choices, (list, tuple)) else list(device_array(choices))
    parts = _choices(given, array)
    if not parts:
        raise InvalidArgument("choose() needs at least one choice")
    shape = common_shape(index.shape, *(part.shape for part in parts))
    whole = kw.stack([part._broadcast(shape) for part in parts])
    made = kw.take_along_axis(whole, index._broadcast(shape)[None], 0, mode=mode)[0]
    return made if out is None else stored(made, out)


def _choices(given: Sequence[Any], near: Array) -> list[Array]:
    """Arrays; numbers have the type that they have beside the arrays."""
    import kernwright as kw

    numbers = (bool, int, float, complex)
    if not any(isinstance(choice, numbers) for choice in given):
        return [device_array(choice, f"choice {i}") for i, choice in enumerate(given)]
    dtype = kw.result_type(*given)
    return [
        kw.full((), choice, dtype, device=near.device)
        if isinstance(choice, numbers)
        else device_array(choice, f"choice {i}")
        for i, choice in enumerate(given)
    ]
