"""The elementwise operations that can be fused: NumPy's rule for the dtype, and device code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Operation(NamedTuple):
    """`code` has a text a kind of the dtype it computes in; `loop` says which dtype that is:

    "result" the result's, "common" the operands' common one, "self" the first operand's, "bool".
    """

    ufunc: Any
    loop: str
    code: dict[str, str]
    arity: int


def _all(text: str) -> dict[str, str]:
    return dict.fromkeys("biuf", text)


def _whole_float(whole: str, floating: str) -> dict[str, str]:
    return {"b": whole, "i": whole, "u": whole, "f": floating}


def _floats(names: str, ufunc: Any = None) -> dict[str, Operation]:
    """Functions of floats alone; integers become floats."""
    return {
        name: Operation(getattr(np, _NUMPY.get(name, name), ufunc), "result",
                        {"f": f"{_DEVICE.get(name, name)}({{0}})"}, 1)
        for name in names.split()
    }  # fmt: skip


_NUMPY = {
    **{f"a{f}": f"arc{f}" for f in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "rsqrt": "sqrt",
    "erf": "exp",
    "erfc": "exp",
}
_DEVICE: dict[str, str] = {}
_COMPARE = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def _table() -> dict[str, Operation]:
    table = _floats(
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan "
        "sinh cosh tanh asinh acosh atanh erf erfc"
    )

    def add(name: str, numpy: Any, loop: str, code: dict[str, str], arity: int = 2) -> None:
        table[name] = Operation(numpy, loop, code, arity)

    wrap = "wrap_{}({{0}}, {{1}})"
    whole = {k: wrap.format("add") for k in "iu"}
    add("add", np.add, "result", {"b": "{0} || {1}", **whole, "f": "{0} + {1}"})
    whole = {k: wrap.format("multiply") for k in "iu"}
    add("multiply", np.multiply, "result", {"b": "{0} && {1}", **whole, "f": "{0} * {1}"})
    whole = {k: wrap.format("subtract") for k in "iu"}
    add("subtract", np.subtract, "result", {**whole, "f": "{0} - {1}"})
    add("divide", np.true_divide, "result", {"f": "{0} / {1}"})
    for name, function, floating in (
        ("floor_divide", "floor_divide_whole", "floor_divide"),
        ("remainder", "remainder_whole", "remainder_floor"),
        ("fmod", "fmod_whole", "fmod"),
        ("pow", "power_whole", "pow"),
    ):
        code = dict.fromkeys("iu", f"{function}({{0}}, {{1}})")
        numpy = np.power if name == "pow" else getattr(np, name)
        add(name, numpy, "result", {**code, "f": f"{floating}({{0}}, {{1}})"})
    for name, function in (("maximum", "Maximum"), ("minimum", "Minimum")):
        add(name, getattr(np, name), "result", _all(f"{function}()({{0}}, {{1}})"))
    for name in ("atan2", "hypot", "copysign", "nextafter", "logaddexp"):
        numpy = np.arctan2 if name == "atan2" else getattr(np, name)
        add(name, numpy, "result", {"f": f"{name}({{0}}, {{1}})"})
    for name, sign in _COMPARE.items():
        add(name, getattr(np, name), "common", _all(f"{{0}} {sign} {{1}}"))
    for name, sign, logical in (("and", "&", "&&"), ("or", "|", "||"), ("xor", "^", "!=")):
        code = {"b": f"{{0}} {logical} {{1}}", **dict.fromkeys("iu", f"{{0}} {sign} {{1}}")}
        add(f"bitwise_{name}", getattr(np, f"bitwise_{name}"), "result", code)
        code = {"b": f"{{0}} {logical} {{1}}"}
        add(f"logical_{name}", getattr(np, f"logical_{name}"), "bool", code)
    for side in ("left", "right"):
        code = dict.fromkeys("iu", f"shift_{side}({{0}}, {{1}})")
        add(f"bitwise_{side}_shift", getattr(np, f"{side}_shift"), "result", code)
    add("where", np.where, "result", _all("{0} ? {1} : {2}"), 3)
    _add_unary(add)
    return table


def _add_unary(add: Any) -> None:
    add("bitwise_invert", np.invert, "result", {"b": "!{0}", **dict.fromkeys("iu", "~{0}")}, 1)
    add("logical_not", np.logical_not, "bool", {"b": "!{0}"}, 1)
    add("negative", np.negative, "result",
        {**dict.fromkeys("iu", "wrap_negative({0})"), "f": "-{0}"}, 1)  # fmt: skip
    add("positive", np.positive, "result", dict.fromkeys("iuf", "{0}"), 1)
    add("abs", np.abs, "result",
        {"b": "{0}", "u": "{0}", "i": "absolute_whole({0})", "f": "fabs({0})"}, 1)  # fmt: skip
    add(
        "sign",
        np.sign,
        "result",
        {**dict.fromkeys("iu", "sign_whole({0})"), "f": "math_sign({0})"},
        1,
    )
    square = dict.fromkeys("iu", "wrap_multiply({0}, {0})")
    add("square", np.square, "result", {**square, "f": "{0} * {0}"}, 1)
    whole = {"u": "{0} == 1 ? 1 : 0", "i": "{0} == 1 || {0} == -1 ? {0} : 0"}
    add("reciprocal", np.reciprocal, "result", {**whole, "f": "1 / {0}"}, 1)
    for name in ("ceil", "floor", "trunc"):
        add(name, getattr(np, name), "result", _whole_float("{0}", f"{name}({{0}})"), 1)
    add("round", np.rint, "result", _whole_float("{0}", "rint({0})"), 1)
    add("isnan", np.isnan, "self", _whole_float("false", "{0} != {0}"), 1)
    add("isinf", np.isinf, "self", _whole_float("false", "isinf({0})"), 1)
    add("isfinite", np.isfinite, "self", _whole_float("true", "isfinite({0})"), 1)
    signs = {"b": "false", "u": "false", "i": "{0} < 0", "f": "signbit({0})"}
    add("signbit", np.signbit, "self", signs, 1)


OPERATIONS = _table()

# NumPy's ufuncs and older names -> the names here.
ALIASES = {
    **{numpy: name for name, numpy in _NUMPY.items() if numpy.startswith("arc")},
    "absolute": "abs",
    "fabs": "abs",
    "true_divide": "divide",
    "power": "pow",
    "mod": "remainder",
    "arctan2": "atan2",
    "rint": "round",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
}
REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")
