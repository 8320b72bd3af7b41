"""Gradients beside differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright._grad import nests
from kernwright._grad.transforms import vjp
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["gradcheck"]


def gradcheck(
    f: Callable[..., Any], *args: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3
) -> bool:
    """Compares the gradients of `f` with central differences, as torch.autograd.gradcheck does:
    True, or InvalidArgument with the argument, the element and both numbers.

    Each argument is an array of float64, of complex128, or a nest of such; others are passed on.
    The result is an array of real numbers or of complex128. Every element of every argument is
    moved by `eps` to both sides: keep them few. Points where `f` has a jump or a kink fail.

    >>> kw.gradcheck(lambda x: kw.exp(x).sum(), kw.asarray([0.5, 1.0], dtype="float64"))
    True
    """
    given = [_checked(each, f"argument {i}") for i, each in enumerate(args)]
    chosen = [i for i, each in enumerate(given) if nests.arrays(each)]
    if not chosen:
        raise ArgumentError("gradcheck() needs an argument that is an array")

    def called(*some: Any) -> Any:
        whole = list(given)
        for i, each in zip(chosen, some, strict=True):
            whole[i] = each
        return f(*whole)

    some = [given[i] for i in chosen]
    result, back = vjp(called, *some)
    if not isinstance(result, Array):
        raise ArgumentError(
            f"gradcheck() takes a function of one array, got {type(result).__name__}"
        )
    copies = [nests.copied(each) for each in some]  # a gradient needs the values of `some`
    moved = nests.arrays(copies)
    for number in range(result.size):
        for unit in (1.0, 1j) if result.dtype.kind == "c" else (1.0,):
            cotangent = np.zeros(result.shape, result.dtype)
            cotangent.reshape(-1)[number] = unit
            found = nests.arrays(list(back(kw.asarray(cotangent, device=result.device))))
            for place, (array, gradient) in enumerate(zip(moved, found, strict=True)):
                _compare(called, copies, array, gradient, cotangent, place, (eps, atol, rtol))
    return True


def _checked(value: Any, name: str) -> Any:
    for array in nests.arrays(value):
        if array.dtype.name not in ("float64", "complex128"):
            raise ArgumentError(
                f"{name} of gradcheck() is of {array.dtype}: differences need float64 or complex128"
            )
    return value


def _compare(
    called: Callable[..., Any], some: list[Any], array: Array, gradient: Array, cotangent: Any,
    place: int, tolerances: tuple[float, float, float],
) -> None:  # fmt: skip
    eps, atol, rtol = tolerances
    analytic = gradient.numpy().reshape(-1)
    before = array.numpy()
    for i in range(array.size):
        slope: Any = 0.0
        for unit in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
            ends = []
            for step in (eps, -eps):
                values = before.copy()
                values.reshape(-1)[i] += step * unit
                array[...] = kw.asarray(values, device=array.device)
                ends.append(called(*some).numpy())
            change = (ends[0] - ends[1]) / (2 * eps)
            slope = slope + unit * np.real(np.sum(np.conj(cotangent) * change))
        array[...] = kw.asarray(before, device=array.device)
        if not abs(analytic[i] - slope) <= atol + rtol * abs(slope):
            raise InvalidArgument(
                f"gradcheck(): array {place} of the arguments, element "
                f"{tuple(int(n) for n in np.unravel_index(i, array.shape))}: the gradient is "
                f"{analytic[i]:.9g}, differences give {slope:.9g}"
            )
