"""Kernel Tuner's module for tuning the precision: arguments that follow a parameter, and errors."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright._support.typed import publish
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.tune._expression import Expression
from kernwright.tune.observers import OutputObserver

__all__ = [
    "AccuracyObserver",
    "Tunable",
    "TunablePrecision",
    "error_metric_from_name",
]


class Tunable(UserDict[Any, Any]):
    """An argument of tune_kernel() that is another array for each value of a parameter.

    `param_key`: the parameter, an expression over parameters, or a function of the configuration;
    `arrays`: the array for each value, a mapping, or a sequence for the values 0, 1, ...
    NameNotFound for a value without an array.

    >>> rows = np.arange(6.0).reshape(2, 3)
    >>> matrix = kw.tune.accuracy.Tunable("layout", {"c": rows, "f": rows.T.copy()})
    >>> matrix({"layout": "f"}).shape
    (3, 2)
    """

    def __init__(self, param_key: Any, arrays: Mapping[Any, Any] | Sequence[Any]) -> None:
        if isinstance(arrays, (list, tuple)):
            arrays = dict(enumerate(arrays))
        if not isinstance(arrays, Mapping) or not arrays:
            raise ArgumentError("Tunable(key, arrays) wants a mapping or a list with an array")
        if not callable(param_key) and not isinstance(param_key, str):
            raise ArgumentError(
                f"Tunable(key, arrays) wants a name or a function, got {type(param_key).__name__}"
            )
        super().__init__(arrays)
        self.param_key = param_key

    def select_for_configuration(self, params: Mapping[str, Any]) -> Any:
        """The array for a configuration."""
        key = self.param_key
        if callable(key):
            option = key(dict(params))
        elif key in params:
            option = params[key]
        else:
            option = Expression(key)(dict(params))
        if option not in self.data:
            known = ", ".join(map(repr, self.data))
            raise NameNotFound(f"the argument has no array for {option!r}; it has: {known}")
        return self.data[option]

    def __call__(self, params: Mapping[str, Any]) -> Any:
        return self.select_for_configuration(params)


def _bfloat16() -> Any:
    """The dtype, None where there is no package ml_dtypes."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return None
    return np.dtype(bfloat16)


_NAMES = {
    **dict.fromkeys(("half", "f16", "float16", "__half", "khalf", 16), np.dtype(np.float16)),
    **dict.fromkeys(("float", "single", "f32", "float32", "kfloat", 32), np.dtype(np.float32)),
    **dict.fromkeys(("double", "f64", "float64", "kdouble", 64), np.dtype(np.float64)),
}
_BFLOAT16 = ("bfloat16", "bf16", "kbfloat16", "__nv_bfloat16")


def _dtype_named(name: Any) -> Any:
    key = name.lower() if isinstance(name, str) else name
    if key in _BFLOAT16:
        found = _bfloat16()
        if found is None:
            raise ArgumentError(f"{name} wants the package ml_dtypes: pip install ml_dtypes")
        return found
    if key in _NAMES:
        return _NAMES[key]
    try:
        return np.dtype(name)
    except TypeError:
        raise InvalidArgument(f"{name!r} names no dtype of NumPy") from None


class TunablePrecision(Tunable):
    """An argument of tune_kernel() whose precision follows a parameter: `array` converted to the
    dtype of each of its values.

    `dtypes`: dtypes by value, or a list of values that name dtypes; by default "half", "float",
    "double" and, with the package ml_dtypes, "bfloat16".

    >>> x = kw.tune.accuracy.TunablePrecision("real", np.ones(4))
    >>> x({"real": "half"}).dtype, x({"real": "double"}).dtype
    (dtype('float16'), dtype('float64'))
    """

    def __init__(self, param_key: Any, array: Any, dtypes: Any = None) -> None:
        if not dtypes:
            named = {"half": np.float16, "float": np.float32, "double": np.float64}
            dtypes = {name: np.dtype(dtype) for name, dtype in named.items()}
            if (bfloat16 := _bfloat16()) is not None:
                dtypes["bfloat16"] = bfloat16
        elif not isinstance(dtypes, Mapping):
            dtypes = {name: _dtype_named(name) for name in dtypes}
        given = array if isinstance(array, np.generic) else np.asarray(array)
        super().__init__(param_key, {name: given.astype(dtype) for name, dtype in dtypes.items()})


_SHORT = {
    "average": "mean", "avg": "mean", "square": "squared", "sq": "squared", "max": "maximum",
    "rel": "relative", "abs": "absolute", "log": "logarithmic",
}  # fmt: skip


def _metrics(least: float) -> dict[str, Callable[[Any, Any], Any]]:
    """By name; `a` is the answer. `least` keeps divisors and logarithms from 0."""

    def size(a: Any) -> Any:
        return np.maximum(np.abs(a), least)

    def logarithms(a: Any, b: Any) -> Any:
        return np.log10(a + least) - np.log10(b + least)

    def square(a: Any) -> Any:
        return np.mean(np.square(np.abs(a)))

    return {
        "mse": lambda a, b: square(a - b),
        "rmse": lambda a, b: np.sqrt(square(a - b)),
        "nrmse": lambda a, b: np.sqrt(square(a - b) / square(a)),
        "rmsre": lambda a, b: np.sqrt(square((a - b) / size(a))),
        "rmsle": lambda a, b: np.sqrt(square(logarithms(a, b))),
        "mae": lambda a, b: np.mean(np.abs(a - b)),
        "mre": lambda a, b: np.mean(np.abs(a - b) / size(a)),
        "male": lambda a, b: np.mean(np.abs(logarithms(a, b))),
        "maximum": lambda a, b: np.max(np.abs(a - b)),
        "maximum relative": lambda a, b: np.max(np.abs(a - b) / size(a)),
    }


_LONG = {
    "mean squared": "mse", "root mean squared": "rmse", "normalized root mean squared": "nrmse",
    "root mean squared relative": "rmsre", "root mean squared logarithmic": "rmsle",
    "absolute": "mae", "mean absolute": "mae", "relative": "mre", "mean relative": "mre",
    "mean absolute logarithmic": "male", "maximum absolute": "maximum",
}  # fmt: skip


def _wide(values: Any) -> Any:
    array = np.asarray(values)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)


def error_metric_from_name(user_key: str, EPS: float = 1e-8) -> Callable[[Any, Any], float]:
    """The function of an answer and an output, arrays of one shape, that gives their difference.

    Names, with or without "error", also written out ("root mean square error"): MSE, RMSE, NRMSE
    (by the answer's own root mean square), RMSRE and MRE (relative to the answer's magnitude, at
    least `EPS`), RMSLE and MALE (of decimal logarithms), MAE, max, max rel. InvalidArgument for
    another name. Computed in float64.

    >>> rmse = kw.tune.accuracy.error_metric_from_name("root mean square error")
    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.4142135623730951
    """
    words = re.split(r"[\s_-]+", str(user_key).strip().lower())
    key = " ".join(_SHORT.get(word, word) for word in words if word != "error")
    known = _metrics(EPS)
    metric = known.get(_LONG.get(key, key))
    if metric is None:
        raise InvalidArgument(
            f"there is no error metric {user_key!r}; there is: {', '.join((*known, *_LONG))}"
        )

    def difference(answer: Any, output: Any) -> float:
        return float(metric(_wide(answer), _wide(output)))

    return difference


class AccuracyObserver(OutputObserver):
    """Adds the error of a configuration's outputs to its result, by the name `key`.

    `metric`: a name for error_metric_from_name(), or a function of an answer and an output; None:
    the root mean square error. The largest error of the outputs that `answer=` has a value for
    counts. `atol` is the least divisor of relative errors.

    >>> text = "__global__ void third(real* x) { x[threadIdx.x] = real(1) / real(3); }"
    >>> x = kw.tune.accuracy.TunablePrecision("real", np.zeros(32), ["float", "double"])
    >>> rows, _ = kw.tune.tune_kernel(
    ...     "third", text, 32, [x], {"real": ["float", "double"], "block_size_x": [32]},
    ...     answer=[np.full(32, 1 / 3)], quiet=True,
    ...     observers=[kw.tune.accuracy.AccuracyObserver("max")])
    >>> {row["real"]: row["error"] < 1e-12 for row in rows}
    {'float': False, 'double': True}
    """

    def __init__(self, metric: Any = None, key: str = "error", *, atol: float = 1e-8) -> None:
        if metric is not None and not callable(metric) and not isinstance(metric, str):
            raise ArgumentError(f"metric= is a name or a function, got {type(metric).__name__}")
        self.metric = metric if callable(metric) else error_metric_from_name(metric or "rmse", atol)
        self.key = key
        self.result: float | None = None

    def process_output(self, answer: Any, output: Sequence[Any]) -> None:
        """Computes the error. InvalidArgument where `answer` has no value of an output."""
        pairs = zip(answer or (), output, strict=False)
        errors = [self.metric(wanted, got) for wanted, got in pairs if wanted is not None]
        if not errors:
            raise InvalidArgument("AccuracyObserver wants answer= with the value of an output")
        self.result = float(np.max(errors))

    def get_results(self) -> dict[str, Any]:
        """The error by its name."""
        return {self.key: self.result}


publish(globals(), __all__)
