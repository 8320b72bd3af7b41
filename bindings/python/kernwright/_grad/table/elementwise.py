"""Gradients of elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._grad.recording import Pairs
from kernwright._grad.table import special

Rule = Callable[..., Pairs]


def _is_number(x: Any) -> bool:
    """An operand without axes and dtype; others are arrays, or values of a fused function."""
    return not hasattr(x, "ndim")


def _c(x: Any) -> bool:
    return not _is_number(x) and x.dtype.kind == "c"


# One operand, and what the gradient needs of it: (x, g).
_OF_OPERAND: dict[str, Callable[[Any, Array], Any]] = {
    "abs": lambda x, g: g * kw.sign(x),
    "acos": lambda x, g: -g / kw.sqrt(1 - x * x),
    "acosh": lambda x, g: g / kw.sqrt(x * x - 1),
    "angle": lambda x, g: g * (1j * x) / kw.square(kw.abs(x)) if _c(x) else kw.zeros_like(g),
    "asin": lambda x, g: g / kw.sqrt(1 - x * x),
    "asinh": lambda x, g: g / kw.sqrt(x * x + 1),
    "atan": lambda x, g: g / (1 + x * x),
    "atanh": lambda x, g: g / (1 - x * x),
    "cos": lambda x, g: -g * kw.sin(x),
    "cosh": lambda x, g: g * kw.sinh(x),
    "erf": lambda x, g: g * kw.exp(-x * x) * (2 / math.sqrt(math.pi)),
    "fabs": lambda x, g: g * kw.sign(x),
    "i0": special.i0,
    "log": lambda x, g: g / x,
    "log10": lambda x, g: g / (x * math.log(10)),
    "log1p": lambda x, g: g / (1 + x),
    "log2": lambda x, g: g / (x * math.log(2)),
    "sin": lambda x, g: g * kw.cos(x),
    "sinc": lambda x, g: g * kw.where(
        x == 0, 0, (kw.cos(math.pi * x) - kw.sinc(x)) / kw.where(x == 0, 1, x)),
    "sinh": lambda x, g: g * kw.cosh(x),
    "square": lambda x, g: g * (2 * x),
}  # fmt: skip

# One operand, and what the gradient needs of the result: (y, g).
_OF_RESULT: dict[str, Callable[[Any, Array], Any]] = {
    "cbrt": lambda y, g: g / (3 * y * y),
    "exp": lambda y, g: g * y,
    "exp2": lambda y, g: g * (y * math.log(2)),
    "expm1": lambda y, g: g * (y + 1),
    "reciprocal": lambda y, g: -g * (y * y),
    "rsqrt": lambda y, g: g * (-0.5 * y * y * y),
    "sqrt": lambda y, g: g / (2 * y),
    "tan": lambda y, g: g * (1 + y * y),
    "tanh": lambda y, g: g * (1 - y * y),
}

# One operand, and the gradient alone.
_LINEAR: dict[str, Callable[[Array], Any]] = {
    "conj": lambda g: kw.conj(g),
    "deg2rad": lambda g: g * (math.pi / 180),
    "imag": lambda g: g * 1j,
    "negative": lambda g: -g,
    "positive": lambda g: g,
    "rad2deg": lambda g: g * (180 / math.pi),
    "real": lambda g: g,
}


def _same(g: Array) -> Array:
    return g


def _add(y: Array, a: Any, b: Any) -> Pairs:
    return (a, _same), (b, _same)


def _subtract(y: Array, a: Any, b: Any) -> Pairs:
    return (a, _same), (b, lambda g: -g)


def _multiply(y: Array, a: Any, b: Any) -> Pairs:
    return (a, lambda g: g * b), (b, lambda g: g * a)


def _divide(y: Array, a: Any, b: Any) -> Pairs:
    return (a, lambda g: g / b), (b, lambda g: -g * (y / b))


def _power(y: Array, a: Any, b: Any) -> Pairs:
    """The slope of x**0 is 0, also at 0; that of 0**b in b is 0."""

    def of_base(g: Array) -> Any:
        if not _is_number(b):
            return g * kw.where(b == 0, 0, b * a ** kw.where(b == 0, 1, b - 1))
        return kw.zeros_like(g) if b == 0 else g * b if b == 1 else g * (b * a ** (b - 1))

    def of_exponent(g: Array) -> Any:
        if _is_number(a):
            return g * (y * math.log(a)) if a > 0 else kw.where(y == 0, 0, math.nan)
        return g * kw.where(a == 0, 0, y * kw.log(kw.where(a == 0, 1, a)))

    return (a, of_base), (b, of_exponent)


def _taken(is_taken: Any, ties: Any, g: Array) -> Any:
    """The gradient of an operand that was taken; half of it for each of two equal ones."""
    return kw.where(ties, 0.5 * g, kw.where(is_taken, g, 0))


def _larger(left: Callable[[Any, Any], Any]) -> Rule:
    """The operand that was taken; half for each of two equal ones."""

    def rule(y: Array, a: Any, b: Any) -> Pairs:
        return (
            (a, lambda g: _taken(left(a, b), a == b, g)),
            (b, lambda g: _taken(left(b, a), a == b, g)),
        )

    return rule


def _number(left: Callable[[Any, Any], Any]) -> Rule:
    """As _larger(), and a number where the other operand is NaN."""

    def rule(y: Array, a: Any, b: Any) -> Pairs:
        def share(one: Any, other: Any) -> Callable[[Array], Any]:
            def pull(g: Array) -> Any:
                lost = other != other if _is_number(other) else kw.isnan(other)
                return _taken(left(one, other) | lost, one == other, g)

            return pull

        return (a, share(a, b)), (b, share(b, a))

    return rule


def _clip(y: Array, x: Any, low: Any, high: Any) -> Pairs:
    return (
        (x, lambda g: kw.where((x >= low) & (x <= high), g, 0)),
        (low, lambda g: kw.where((x < low) & (low < high), g, 0)),
        (high, lambda g: kw.where((x > high) | (low > high), g, 0)),
    )


def _where(y: Array, condition: Any, a: Any, b: Any) -> Pairs:
    return (a, lambda g: kw.where(condition, g, 0)), (b, lambda g: kw.where(condition, 0, g))


def _hypot(y: Array, a: Any, b: Any) -> Pairs:
    def share(one: Any) -> Callable[[Array], Any]:
        return lambda g: g * kw.where(y == 0, 0, one / kw.where(y == 0, 1, y))

    return (a, share(a)), (b, share(b))


def _atan2(y: Array, a: Any, b: Any) -> Pairs:
    return (a, lambda g: g * (b / (a * a + b * b))), (b, lambda g: -g * (a / (a * a + b * b)))


def _logaddexp(power: Callable[[Any], Any]) -> Rule:
    """Shares exp(a - y); of two infinities of one sign a half each."""

    def rule(y: Array, a: Any, b: Any) -> Pairs:
        def share(one: Any, other: Any) -> Callable[[Array], Any]:
            return lambda g: g * kw.where(one == other, 0.5, power(one - y))

        return (a, share(a, b)), (b, share(b, a))

    return rule


def _copysign(y: Array, a: Any, b: Any) -> Pairs:
    return ((a, lambda g: g * kw.where(a == 0, 0, y / kw.where(a == 0, 1, a))),)


def _sign(y: Array, x: Any) -> Pairs:
    """A real sign is constant but for jumps; x / abs(x) of complex numbers turns."""
    return ((x, lambda g: _turned(y, x, g)),) if _c(x) else ()


def _turned(y: Any, x: Any, g: Any) -> Any:
    size = kw.abs(x)
    part = (g - kw.real(y * g) * kw.conj(y)) / kw.where(size == 0, 1, size)
    return kw.where(size == 0, 0, part)


def _remainder(quotient: Callable[[Any, Any], Any]) -> Rule:
    def rule(y: Array, a: Any, b: Any) -> Pairs:
        return (a, _same), (b, lambda g: -g * quotient(a, b))

    return rule


def _ldexp(y: Array, x: Any, n: Any) -> Pairs:
    return ((x, lambda g: kw.ldexp(g, n)),)


def _of_operand(pull: Callable[[Any, Array], Any]) -> Rule:
    return lambda y, x: ((x, lambda g: pull(x, g)),)


def _of_result(pull: Callable[[Any, Array], Any]) -> Rule:
    return lambda y, x: ((x, lambda g: pull(y, g)),)


def _linear(pull: Callable[[Array], Any]) -> Rule:
    return lambda y, x: ((x, pull),)


RULES: dict[str, Rule] = {
    **{name: _of_operand(pull) for name, pull in _OF_OPERAND.items()},
    **{name: _of_result(pull) for name, pull in _OF_RESULT.items()},
    **{name: _linear(pull) for name, pull in _LINEAR.items()},
    "add": _add,
    "atan2": _atan2,
    "clip": _clip,
    "copysign": _copysign,
    "divide": _divide,
    "float_power": _power,
    "fmax": _number(lambda a, b: a > b),
    "fmin": _number(lambda a, b: a < b),
    "fmod": _remainder(lambda a, b: kw.trunc(kw.divide(a, b))),
    "hypot": _hypot,
    "ldexp": _ldexp,
    "logaddexp": _logaddexp(lambda x: kw.exp(x)),
    "logaddexp2": _logaddexp(lambda x: kw.exp2(x)),
    "maximum": _larger(lambda a, b: a > b),
    "minimum": _larger(lambda a, b: a < b),
    "multiply": _multiply,
    "pow": _power,
    "remainder": _remainder(lambda a, b: kw.floor_divide(a, b)),
    "sign": _sign,
    "subtract": _subtract,
    "where": _where,
}

# Results that are constant but for jumps: their gradients are 0 and are not computed.
CONSTANT = frozenset({
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "equal", "floor", "floor_divide", "gcd",
    "greater", "greater_equal", "heaviside", "iscomplex", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "lcm", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal", "rint", "round", "signbit", "trunc",
})  # fmt: skip

# No formula of operations that exist.
WITHOUT = frozenset({"nextafter"})
