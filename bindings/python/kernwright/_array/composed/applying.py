"""Python functions applied to slices of an array, and to each element in one kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array, _dtype
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["apply_along_axis", "vectorize"]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """func1d(slice, *args, **kwargs) for each vector along `axis`; the axes of its results take the
    place of `axis`. The function is called once for each vector, with a view of the device: a
    function that takes an axis itself is faster called once. InvalidArgument for no vectors.

    >>> kw.apply_along_axis(lambda v: v[::-1], 1, kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[2, 1],
           [4, 3]])
    """
    import kernwright as kw

    array: Array = device_array(arr, "arr")
    at = axis_of(axis, array.ndim)
    moved = kw.moveaxis(array, at, -1)
    outer = moved.shape[:-1]
    places = list(np.ndindex(*outer))
    if not places:
        raise InvalidArgument(f"there is no vector along axis {axis} of shape {array.shape}")
    made = [_on_device(func1d(moved[place], *args, **kwargs), array) for place in places]
    inner = made[0].shape
    whole = kw.stack(made).reshape((*outer, *inner))
    order = [*range(at), *range(len(outer), len(outer) + len(inner)), *range(at, len(outer))]
    return whole.transpose(order) if order else whole


def _on_device(value: Any, near: Array) -> Array:
    from kernwright._array.creation import asarray

    return value if isinstance(value, Array) else asarray(value, device=near.device)


class vectorize:
    """A function of numbers as one of arrays: traced once, and run as one kernel over the broadcast
    arguments, as kw.fuse() does; branches are written as kw.where().

    `otypes`: the dtypes of the results, one or as many as there are; `excluded`: positions and
    names of arguments that are constants of the kernel. It has no `signature`: arrays of vectors
    are what apply_along_axis() takes. May stand over a function. ArgumentError for what is no
    function, InvalidArgument for functions that cannot be traced.

    >>> relu = kw.vectorize(lambda x, low: kw.where(x > low, x, low))
    >>> relu(kw.asarray([-1.0, 2.0]), 0.0).numpy()
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self, pyfunc: Callable[..., Any] | None = None, otypes: Any = None, doc: str | None = None,
        excluded: Any = None, cache: bool = False, signature: None = None,
    ) -> None:  # fmt: skip
        if signature is not None:
            raise ArgumentError(
                f"vectorize(signature={signature!r}): functions of vectors run by "
                "kw.apply_along_axis()"
            )
        self._options = (otypes, doc, excluded)
        self._function = pyfunc
        if pyfunc is None:
            return
        if not callable(pyfunc):
            raise ArgumentError(f"vectorize() takes a function, got {pyfunc!r:.60}")
        self.otypes = None if otypes is None else _types(otypes)
        self.excluded = frozenset(excluded or ())
        self.__doc__ = doc if doc is not None else pyfunc.__doc__
        self.__name__ = getattr(pyfunc, "__name__", "vectorized")
        self._fused: dict[Any, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arrays and numbers, one at least an array."""
        if self._function is None:  # over a function, with options
            return vectorize(args[0], *self._options)
        constants = {i: args[i] for i in range(len(args)) if i in self.excluded}
        named = {name: kwargs[name] for name in kwargs if name in self.excluded}
        passed = [value for i, value in enumerate(args) if i not in constants]
        others = {name: value for name, value in kwargs.items() if name not in named}
        made = self._kernel(len(args), constants, named, tuple(others))(*passed, *others.values())
        if self.otypes is None:
            return made
        several = made if isinstance(made, tuple) else (made,)
        if len(several) != len(self.otypes):
            raise InvalidArgument(f"{len(self.otypes)} otypes for {len(several)} results")
        found = tuple(
            x.astype(dtype, copy=False) for x, dtype in zip(several, self.otypes, strict=True)
        )
        return found if isinstance(made, tuple) else found[0]

    def _kernel(
        self, count: int, constants: dict[int, Any], named: dict[str, Any], others: tuple[str, ...]
    ) -> Any:
        from kernwright._fuse.fused import fuse

        key = (count, repr(constants), repr(named), others)
        if key not in self._fused:
            function, free = self._function, count - len(constants)
            assert function is not None
            names = [f"x{i}" for i in range(free + len(others))]

            def call(**values: Any) -> Any:
                return _called(function, count, constants, named, others, values)

            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
            call.__signature__ = signature  # type: ignore[attr-defined]
            self._fused[key] = fuse(call, name=self.__name__)
        return self._fused[key]


def _called(
    function: Callable[..., Any], count: int, constants: dict[int, Any], named: dict[str, Any],
    others: tuple[str, ...], values: dict[str, Any],
) -> Any:  # fmt: skip
    """The function with its constants among the values."""
    left = iter(values.values())
    args = [constants[i] if i in constants else next(left) for i in range(count)]
    return function(*args, **dict(zip(others, left, strict=True)), **named)


def _types(otypes: Any) -> tuple[Any, ...]:
    if isinstance(otypes, str):
        return tuple(np.dtype(letter) for letter in otypes)
    return tuple(np.dtype(_dtype(each)) for each in otypes)
