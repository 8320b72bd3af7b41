"""Distributions of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright import _core
from kernwright._support.typed import typed
from kernwright.random._parameters import (
    FINITE_POSITIVE,
    NOT_NEGATIVE,
    POSITIVE,
    Parameter,
    is_device_array,
    is_plain,
    require_order,
)
from kernwright.random._sequence import RandomSequence


@typed
class ContinuousDraws(RandomSequence):
    """The distributions of real numbers: float32, float64, float16 or bfloat16; without a dtype
    that of get_default_dtype().

    Parameters are numbers or arrays that broadcast with `shape` (left out: their own shape).
    Numbers and arrays of the host are checked. An array of the device is not, because the check
    would wait for the device: an element outside its range gives NaN. `out` is filled instead of a
    new array.
    """

    def uniform(
        self, shape: Any = (), dtype: Any = None, *, low: Any = 0.0, high: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers from `low` up to and without `high`: low + u * (high - low), with u a multiple
        of 2 to the -24 in float32, -53 in float64, -11 in float16, -8 in bfloat16."""
        if not is_plain(low, high):
            require_order("low", low, "high", high)
            given = (Parameter("low", low), Parameter("high", high))
            return self._parametric("uniform", given, shape, dtype, out, device)
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_uniform, target, low, high)

    def normal(
        self, shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Normal numbers, by Box and Muller: up to 5.8 deviations from the mean in float32, 8.6 in
        float64. Raises InvalidArgument for a negative `std`."""
        if not is_plain(mean, std):
            given = (Parameter("mean", mean), Parameter("std", std, NOT_NEGATIVE))
            return self._parametric("normal", given, shape, dtype, out, device)
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_normal, target, mean, std)

    def exponential(
        self, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Exponential numbers of mean `scale`."""
        if not is_plain(scale):
            given = (Parameter("scale", scale, NOT_NEGATIVE),)
            return self._parametric("exponential", given, shape, dtype, out, device)
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_exponential, target, scale)

    def gamma(
        self, alpha: Any, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the gamma distribution of shape parameter `alpha` (above 0), mean
        alpha * scale, by Marsaglia and Tsang's rejection."""
        if not is_plain(alpha, scale):
            given = (
                Parameter("alpha", alpha, FINITE_POSITIVE), Parameter("scale", scale, NOT_NEGATIVE),
            )  # fmt: skip
            return self._parametric("gamma", given, shape, dtype, out, device)
        target = self._target(shape, dtype, out, device)
        return self._fill(_core._random_gamma, target, alpha, scale)

    def laplace(
        self, shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the double exponential distribution around `loc`, of standard
        deviation sqrt(2) * scale."""
        given = (
            Parameter("loc", loc),
            Parameter("scale", scale, NOT_NEGATIVE),
        )
        return self._parametric("laplace", given, shape, dtype, out, device)

    def logistic(
        self, shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the logistic distribution around `loc`."""
        given = (
            Parameter("loc", loc),
            Parameter("scale", scale, NOT_NEGATIVE),
        )
        return self._parametric("logistic", given, shape, dtype, out, device)

    def gumbel(
        self, shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the Gumbel distribution of largest values with the mode `loc`."""
        given = (
            Parameter("loc", loc),
            Parameter("scale", scale, NOT_NEGATIVE),
        )
        return self._parametric("gumbel", given, shape, dtype, out, device)

    def cauchy(
        self, shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the Cauchy distribution with the median `loc`; it has no mean."""
        given = (
            Parameter("loc", loc),
            Parameter("scale", scale, NOT_NEGATIVE),
        )
        return self._parametric("cauchy", given, shape, dtype, out, device)

    def lognormal(
        self, shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """The exponentials of normal numbers with this mean and standard deviation."""
        given = (
            Parameter("mean", mean),
            Parameter("std", std, NOT_NEGATIVE),
        )
        return self._parametric("lognormal", given, shape, dtype, out, device)

    def weibull(
        self, a: Any, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the Weibull distribution of shape parameter `a`: scale * E ** (1 / a) with
        exponential numbers E."""
        given = (
            Parameter("a", a, POSITIVE),
            Parameter("scale", scale, NOT_NEGATIVE),
        )
        return self._parametric("weibull", given, shape, dtype, out, device)

    def pareto(
        self, a: Any, shape: Any = (), dtype: Any = None, *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the Pareto distribution II (Lomax) of shape parameter `a`, from 0 on, as
        NumPy's. Add 1 for the classical one."""
        given = (Parameter("a", a, POSITIVE),)
        return self._parametric("pareto", given, shape, dtype, out, device)

    def standard_t(
        self, df: Any, shape: Any = (), dtype: Any = None, *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of Student's t distribution with `df` degrees of freedom."""
        given = (Parameter("df", df, POSITIVE),)
        return self._parametric("standard_t", given, shape, dtype, out, device)

    def beta(
        self, a: Any, b: Any, shape: Any = (), dtype: Any = None, *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the beta distribution, between 0 and 1, with the mean a / (a + b)."""
        given = (
            Parameter("a", a, FINITE_POSITIVE),
            Parameter("b", b, FINITE_POSITIVE),
        )
        return self._parametric("beta", given, shape, dtype, out, device)

    def rayleigh(
        self, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers of the Rayleigh distribution: lengths of vectors of two normal numbers of
        deviation `scale`."""
        wide = scale * 2**0.5 if is_device_array(scale) else np.multiply(scale, 2**0.5)
        given = (Parameter("a", 2.0), Parameter("scale", wide, NOT_NEGATIVE))
        return self._parametric("weibull", given, shape, dtype, out, device)

    def chisquare(
        self, df: Any, shape: Any = (), dtype: Any = None, *, out: Any = None, device: Any = None
    ) -> _core.Array:
        """Sums of the squares of `df` (above 0, also a fraction) normal numbers."""
        half = df / 2 if is_device_array(df) else np.divide(df, 2)
        given = (Parameter("df / 2", half, FINITE_POSITIVE), Parameter("scale", 2.0))
        return self._parametric("gamma", given, shape, dtype, out, device)

    def triangular(
        self, left: Any, mode: Any, right: Any, shape: Any = (), dtype: Any = None, *,
        out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Numbers between `left` and `right`, whose density is a triangle with the peak at
        `mode`."""
        require_order("left", left, "mode", mode)
        require_order("mode", mode, "right", right)
        given = (Parameter("left", left), Parameter("mode", mode), Parameter("right", right))
        return self._parametric("triangular", given, shape, dtype, out, device)

    def truncated_normal(
        self, shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0,
        low: Any = -2.0, high: Any = 2.0, out: Any = None, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Normal numbers of this mean and standard deviation, given that they lie between `low`
        and `high` (values, not numbers of deviations), by the inverse of the distribution."""
        require_order("low", low, "high", high)
        given = (
            Parameter("low", low), Parameter("high", high), Parameter("mean", mean),
            Parameter("std", std, POSITIVE),
        )  # fmt: skip
        return self._parametric("truncated_normal", given, shape, dtype, out, device)
