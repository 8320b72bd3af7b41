"""A check for NaN and infinity that names the first array with one."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import Error, InvalidArgument
from kernwright.optim._nest import leaves
from kernwright.random._sequence import whole

__all__ = ["FiniteCheck", "NotFinite"]


class NotFinite(Error, FloatingPointError):
    """An array has a number that is not finite: `step`, `name`, and the counts `nan` and `inf`."""

    step = 0
    name = ""
    nan = 0
    inf = 0


class FiniteCheck:
    """A check that one can switch on: call it with a step and nests of arrays by name.

    The arrays are looked at in the order of the arguments, and the first that has a NaN or an
    infinity raises NotFinite: complex numbers, where either part is one, and float8 count, too. One
    pass over all of them comes first, and one number comes to the host, so a call waits for the
    device; with `every` only steps that it divides are checked. Without `enabled`, an attribute, a
    call does nothing.

    >>> check = kw.train.FiniteCheck()
    >>> check(1, loss=kw.ones(()), gradients={"w": kw.ones(3), "b": kw.ones(2)})
    >>> try:
    ...     check(2, gradients={"w": kw.ones(3), "b": kw.full(2, kw.nan)})
    ... except kw.train.NotFinite as error:
    ...     print(error)
    step 2: gradients.b has 2 NaN and 0 infinite of 2 numbers; finite before it: gradients.w
    """

    def __init__(self, enabled: bool = True, *, every: int = 1) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InvalidArgument(f"every is a number of steps from 1 on, got {every!r:.40}")
        self.enabled, self.every = enabled, every

    def __call__(self, step: int, **nests: Any) -> None:
        """Raises NotFinite for the first array of `nests` that is not finite."""
        if not self.enabled or whole(step, "step") % self.every != 0:
            return
        arrays = {
            f"{name}.{path}" if path else name: device_array(array, name)
            for name, nest in nests.items()
            for path, array in _paths(nest, name)
        }
        parts = {name: _real_parts(each) for name, each in arrays.items() if each.size > 0}
        real = {name: each for name, each in parts.items() if each}
        if not real:
            return
        largest = _core._gradient_norm([*itertools.chain(*real.values())], math.inf, math.inf)[0]
        if math.isfinite(largest.item()):
            return
        before: list[str] = []
        for name, each in real.items():
            nan, inf = _count(kernwright.isnan, each), _count(kernwright.isinf, each)
            if nan or inf:
                error = NotFinite(
                    f"step {step}: {name} has {nan} NaN and {inf} infinite of "
                    f"{arrays[name].size} numbers; {_finite_ones(before)}"
                )
                error.step, error.name, error.nan, error.inf = step, name, nan, inf
                raise error
            before.append(name)


def _paths(nest: Any, name: str) -> list[tuple[str, Any]]:
    if hasattr(nest, "shape"):
        return [("", nest)]
    return list(leaves(nest, name).items())


def _real_parts(array: Array) -> list[Array]:
    """The array, or both parts of a complex one; nothing of whole numbers."""
    if array.dtype.kind == "c":
        return [kernwright.real(array), kernwright.imag(array)]
    if array.dtype.name.startswith("float8"):
        return [array.astype("float32")]
    is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return [array] if is_float else []


def _count(is_one: Callable[[Array], Array], parts: list[Array]) -> int:
    """The numbers of which a part is such a one."""
    found = functools.reduce(kernwright.logical_or, map(is_one, parts))
    return int(kernwright.count_nonzero(found).item())


def _finite_ones(names: list[str]) -> str:
    if not names:
        return "it is the first one that was looked at"
    return f"finite before it: {', '.join(names[-3:])}"
