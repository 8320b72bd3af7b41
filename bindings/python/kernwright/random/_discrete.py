"""Distributions of whole numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import kernwright
from kernwright import _core
from kernwright._support.typed import typed
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument
from kernwright.random._parameters import (
    ABOVE_ONE,
    CHANCE,
    COUNT,
    FINITE_POSITIVE,
    MEAN,
    SUCCESS,
    Parameter,
    is_device_array,
    is_plain,
    require_order,
)
from kernwright.random._sequence import RandomSequence


@typed
class DiscreteDraws(RandomSequence):
    """The distributions of whole numbers, as int64 or int32 (where a number is beyond it, it is
    the largest).

    Parameters are numbers or arrays that broadcast with `shape` (left out: their own shape).
    Numbers and arrays of the host are checked. An array of the device is not, because the check
    would wait for the device: an element outside its range gives -1. `out` is filled instead of a
    new array.
    """

    def bernoulli(
        self, p: Any = 0.5, shape: Any = (), dtype: Any = "bool", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """True (1 in another dtype) with probability `p`, in steps of 2 to the -32. In an array of
        the device a `p` below 0 or NaN is never True, one above 1 always."""
        if not is_plain(p):
            given = (Parameter("p", p, CHANCE),)
            return self._parametric("bernoulli", given, shape, dtype, out, device)
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_bernoulli, target, p)

    def integers(
        self, low: Any, high: Any = None, shape: Any = (), dtype: Any = "int64", *,
        endpoint: bool = False, out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Whole numbers from `low` up to and without `high` (with it: `endpoint`), from 0 up to
        `low` where `high` is left out, each with exactly the same chance. Arrays of bounds are
        of integers; those of the device are not checked."""
        if high is None:
            low, high = 0, low
        if not _are_ints(low, high):
            return self._integers_of_arrays(low, high, endpoint, shape, dtype, out, device)
        first, last = _bounds(low, high, endpoint)
        target = self._target(shape, dtype, out, device)
        _require_inside(first, last, target)
        count = (last - first + 1) % 2**64
        self._draw(
            target.size,
            lambda *state: _core._random_integers(target, first % 2**64, count, *state),
        )
        return target

    def _integers_of_arrays(
        self, low: Any, high: Any, endpoint: bool, shape: Any, dtype: Any, out: Any, device: Any
    ) -> _core.Array:
        for name, bound in (("low", low), ("high", high)):
            if (
                getattr(
                    bound, "dtype", np.asarray(0 if is_device_array(bound) else bound).dtype
                ).kind
                not in "iu"
            ):
                raise ArgumentError(
                    f"low and high are ints or arrays of integers, got {name} {bound!r}"
                )
        require_order("low", low, "high", high, strict=not endpoint)
        first, last = (
            bound
            if is_device_array(bound)
            else kernwright.asarray(np.asarray(bound, np.int64), device=device)
            for bound in (low, high)
        )
        first = first.astype("int64", copy=False)
        count = last.astype("int64", copy=False) - first + int(endpoint)
        given = (Parameter("low", first.view("float64")), Parameter("high", count.view("float64")))
        return self._parametric("integers", given, shape, dtype, out, device)

    def poisson(
        self, lam: Any = 1.0, shape: Any = (), dtype: Any = "int64", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Poisson numbers of mean `lam`."""
        given = (Parameter("lam", lam, MEAN),)
        return self._parametric("poisson", given, shape, dtype, out, device)

    def binomial(
        self, n: Any, p: Any, shape: Any = (), dtype: Any = "int64", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """How many of `n` trials succeed, each with the chance `p`."""
        given = (
            Parameter("n", n, COUNT),
            Parameter("p", p, CHANCE),
        )
        return self._parametric("binomial", given, shape, dtype, out, device)

    def geometric(
        self, p: Any, shape: Any = (), dtype: Any = "int64", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """The number of trials up to and with the first success, each with the chance `p`."""
        given = (Parameter("p", p, SUCCESS),)
        return self._parametric("geometric", given, shape, dtype, out, device)

    def negative_binomial(
        self, n: Any, p: Any, shape: Any = (), dtype: Any = "int64", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Failures before `n` successes (above 0, also a fraction), each with the chance `p`."""
        given = (
            Parameter("n", n, FINITE_POSITIVE),
            Parameter("p", p, SUCCESS),
        )
        return self._parametric("negative_binomial", given, shape, dtype, out, device)

    def zipf(
        self, a: Any, shape: Any = (), dtype: Any = "int64", *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers k from 1 on with chances in proportion to k ** -a: Zipf's law."""
        given = (Parameter("a", a, ABOVE_ONE),)
        return self._parametric("zipf", given, shape, dtype, out, device)


def _are_ints(*values: Any) -> bool:
    return all(
        hasattr(value, "__index__") and getattr(value, "shape", ()) == () for value in values
    )


def _bounds(low: Any, high: Any, endpoint: bool) -> tuple[int, int]:
    try:
        first, last = operator.index(low), operator.index(high) - (not endpoint)
    except TypeError:
        raise ArgumentError(f"low and high are ints, got {low!r} and {high!r}") from None
    if last < first:
        raise InvalidArgument(f"no whole number lies from {low} up to {high}")
    return first, last


def _require_inside(first: int, last: int, target: _core.Array) -> None:
    if target.dtype.kind not in "iu":
        raise InvalidArgument(f"random integers are of an integer dtype, not {target.dtype}")
    limits = np.iinfo(target.dtype)
    if first < limits.min or last > limits.max:
        raise ArgumentRangeError(
            f"{first} ... {last} do not fit {target.dtype} ({limits.min} ... {limits.max})"
        )
