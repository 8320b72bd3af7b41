"""Cases of creation, elementwise functions, operators and methods of arrays."""

import math
import operator

import numpy as np
from every_operation import HOST, VIEW, Foreign, Spec, Table, s

import kernwright as kw
from kernwright._array import aliases

N = 4099  # some packs of 16 bytes for each thread, and a tail


def function(name):
    return lambda *args: getattr(kw, name)(*args)


creation = Table("creation")
creation.add("zeros", lambda: kw.zeros((70, 3), "int16"))
creation.add("ones", lambda: kw.ones((70, 3), "bfloat16"))
creation.add("full", lambda: kw.full((70, 3), 2.5, "float64"))
creation.add("full", lambda: kw.full((7, 3), 2.5 + 1j, "complex64"), form="complex")
creation.add("full", lambda: kw.full((7, 3), 2.5 + 1j, "complex128"), form="parts")
creation.add("zeros_like", kw.zeros_like, s(30, 3))
creation.add("ones_like", kw.ones_like, s(30, 3, dtype="uint8"))
creation.add("full_like", lambda x: kw.full_like(x, 7), s(30, 3, dtype="int64"))
creation.add("empty_like", lambda x: kw.empty_like(x).shape, s(30, 3), kind=VIEW)
creation.add("empty", lambda: kw.empty((30, 3)).shape, kind=VIEW)
creation.add("eye", lambda: kw.eye(20, 33, k=2))
creation.add("diag", kw.diag, s(40))
creation.add("diag", lambda x: kw.diag(x, k=-1), s(20, 30), form="matrix")
creation.add("tril", lambda x: kw.tril(x, k=1), s(40, 33))
creation.add("triu", lambda x: kw.triu(x, k=-1), s(3, 20, 33, layout="turned"))
creation.add("meshgrid", lambda x, y: kw.meshgrid(x, y), s(20), s(30))
creation.add("asarray", lambda x: kw.asarray(x, "float16"), s(100))
creation.add("asarray", lambda: kw.asarray([1.0, 2.0]), form="host", kind=HOST)
creation.add("from_dlpack", kw.from_dlpack, s(30, 4), kind=VIEW)
creation.add("arange", lambda: kw.arange(5, 300, 3))
creation.add("arange", lambda: kw.arange(0.5, 9, 0.01, "bfloat16"), form="floats")
creation.add("arange", lambda: kw.arange(9, dtype="complex64"), form="complex", kind=HOST)
creation.add("linspace", lambda: kw.linspace(0, 1, 300))
creation.add("linspace", lambda: kw.linspace(0, 9, 300, dtype="int32"), form="int", kind=HOST)
creation.add("astype", lambda x: kw.astype(x, "int32"), s(N, low=-99, high=99))
creation.add("astype", lambda x: kw.astype(x, "float8_e4m3fn"), s(40, 33, layout="gaps"))

elementwise = Table("elementwise")
UNARY = {
    "abs": (-2, 2), "negative": (-2, 2), "positive": (-2, 2), "reciprocal": (1, 2),
    "sign": (-2, 2), "square": (-2, 2), "ceil": (-9, 9), "floor": (-9, 9), "round": (-9, 9),
    "trunc": (-9, 9), "isfinite": (-2, 2), "isinf": (-2, 2), "isnan": (-2, 2), "signbit": (-2, 2),
    "logical_not": (-2, 2), "conj": (-2, 2), "real": (-2, 2), "imag": (-2, 2),
    "acos": (-1, 1), "acosh": (1, 9), "asin": (-1, 1), "asinh": (-2, 2), "atan": (-2, 2),
    "atanh": (-1, 1), "cbrt": (-9, 9), "cos": (-9, 9), "cosh": (-2, 2), "erf": (-2, 2),
    "exp": (-2, 2), "exp2": (-2, 2), "expm1": (-2, 2), "log": (0, 9), "log1p": (0, 9),
    "log2": (0, 9), "log10": (0, 9), "rsqrt": (0, 9), "sin": (-9, 9), "sinh": (-2, 2),
    "sqrt": (0, 9), "tan": (-1, 1), "tanh": (-2, 2),
    "angle": (-2, 2), "deg2rad": (-2, 2), "fabs": (-2, 2), "fix": (-9, 9), "i0": (-2, 2),
    "iscomplex": (-2, 2), "isneginf": (-2, 2), "isposinf": (-2, 2), "isreal": (-2, 2),
    "rad2deg": (-2, 2), "rint": (-9, 9), "sinc": (-2, 2),
}  # fmt: skip
for number, (name, (low, high)) in enumerate(UNARY.items()):
    limits = {"low": low, "high": high}
    elementwise.add(name, function(name), s(N, **limits))
    # The forms of the kernel are the same for all, so each function has one of the others.
    dtype = "complex64" if name in ("conj", "real", "imag") else ("float64", "bfloat16")[number % 2]
    other = (s(20, 33, layout="turned"), s(301, layout="shifted"), s(9, 70, layout="gaps"))
    elementwise.add(name, function(name), other[number % 3]._replace(dtype=dtype, **limits))
ALIASES_OF_TWO = ("arctan2", "left_shift", "mod", "power", "right_shift", "true_divide")
ALIASES_OF_INTEGERS = ("bitwise_not", "invert", "left_shift", "right_shift")
BINARY = {
    "add": "", "subtract": "", "multiply": "", "divide": "", "maximum": "", "minimum": "",
    "copysign": "", "fmod": "", "hypot": "", "nextafter": "", "remainder": "",
    "floor_divide": "", "pow": "", "atan2": "", "logaddexp": "",
    "float_power": "", "fmax": "", "fmin": "", "heaviside": "", "logaddexp2": "",
    "gcd": "i", "lcm": "i",
    "equal": "", "greater": "", "greater_equal": "", "less": "", "less_equal": "",
    "not_equal": "", "logical_and": "", "logical_or": "", "logical_xor": "",
    "bitwise_and": "i", "bitwise_or": "i", "bitwise_xor": "i",
    "bitwise_left_shift": "i", "bitwise_right_shift": "i",
}  # fmt: skip
for number, (name, kind) in enumerate(BINARY.items()):
    of = {"dtype": "int32" if kind else "float32", "low": 1, "high": 5}
    small = of | {"dtype": "uint8" if kind else "float16"}
    elementwise.add(name, function(name), s(N, **of), s(N, **of))
    if number % 2:
        elementwise.add(name, function(name), s(20, 1, 33, **of), s(9, 33, layout="gaps", **small))
    else:
        elementwise.add(
            name, lambda x, n=name: getattr(kw, n)(x, 3), s(301, layout="shifted", **of)
        )
elementwise.add("bitwise_invert", kw.bitwise_invert, s(N, dtype="int16"))
elementwise.add("bitwise_invert", kw.bitwise_invert, s(40, 33, dtype="bool", layout="turned"))
elementwise.add("bitwise_count", kw.bitwise_count, s(N, dtype="int16", low=-99, high=99))
elementwise.add("ldexp", kw.ldexp, s(N), s(N, dtype="int32"))
elementwise.add("frexp", kw.frexp, s(40, 33, layout="turned"))
elementwise.add("modf", kw.modf, s(N))
elementwise.add("nan_to_num", kw.nan_to_num, s(301, layout="shifted"))
elementwise.add("round", lambda x: kw.round(x, 2), s(N), form="decimals")
for name in aliases.__all__:
    whole = {"dtype": "int32", "low": 1, "high": 5} if name in ALIASES_OF_INTEGERS else {"low": 1}
    if name == "concatenate":
        elementwise.add(name, lambda x, y: kw.concatenate([x, y]), s(300), s(300))
    elif name in ALIASES_OF_TWO:
        elementwise.add(name, function(name), s(300, **whole), s(300, **whole))
    else:
        elementwise.add(name, function(name), s(300, **whole))
elementwise.add("clip", lambda x: kw.clip(x, -1, 1), s(N))
elementwise.add("clip", kw.clip, s(20, 33, layout="turned"), s(33, high=0), s(20, 1, low=0))
elementwise.add("where", kw.where, s(N, dtype="bool"), s(N), s(N))
elementwise.add("where", lambda c, x: kw.where(c, x, 0), s(20, 33, dtype="bool"), s(33))
elementwise.add("exp", lambda x, y: kw.exp(x, out=y), s(300), s(300), form="out")
elementwise.add("add", lambda x: kw.add(x[1:], x[:-1], out=x[1:]), s(300), form="overlap")
for dtype in ("complex128", "int64", "bool", "bfloat16"):
    elementwise.add("multiply", kw.multiply, s(301, dtype=dtype), s(301, dtype=dtype), form=dtype)

operators = Table("operators")
NUMBERS = {"low": 1, "high": 6}
SYMBOLS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, "matmul": operator.matmul,
}  # fmt: skip
IN_PLACE = {
    "add": operator.iadd, "sub": operator.isub, "mul": operator.imul,
    "truediv": operator.itruediv, "floordiv": operator.ifloordiv, "mod": operator.imod,
    "pow": operator.ipow, "and": operator.iand, "or": operator.ior, "xor": operator.ixor,
    "lshift": operator.ilshift, "rshift": operator.irshift, "matmul": operator.imatmul,
}  # fmt: skip
for name, call in SYMBOLS.items():
    whole = name in ("and", "or", "xor", "lshift", "rshift")
    spec = s(16, 16, dtype="int32" if whole else "float32", **NUMBERS)
    operators.add(f"Array.__{name}__", call, spec, spec)
    operators.add(f"Array.__i{name}__", IN_PLACE[name], spec, spec)
    if name == "matmul":
        operators.add("Array.__rmatmul__", lambda x, y: x.__rmatmul__(y), spec, spec)
    else:
        operators.add(f"Array.__r{name}__", lambda x, f=call: f(3, x), spec)
operators.add("Array.__divmod__", divmod, s(300, **NUMBERS), s(300, **NUMBERS))
operators.add("Array.__rdivmod__", lambda x: divmod(7, x), s(300, **NUMBERS))
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    operators.add(f"Array.__{name}__", getattr(operator, name), s(300), s(300))
operators.add("Array.__abs__", abs, s(300))
operators.add("Array.__neg__", operator.neg, s(300))
operators.add("Array.__pos__", operator.pos, s(300))
operators.add("Array.__invert__", operator.invert, s(300, dtype="int32"))

ROWS = s(40, 33)
INDICES = s(20, dtype="int64", low=0, high=30)
ONE = Spec((), "int64", 1, 9)


def assigned(x, key, value):
    x[key] = value
    return x


operators.add("Array.__getitem__", lambda x: x[1:, None, ::2], ROWS, kind=VIEW)
operators.add("Array.__getitem__", lambda x, i: x[i, 1:], ROWS, INDICES, form="positions")
operators.add("Array.__getitem__", lambda x: x[[0, 2]], ROWS, form="host", kind=HOST)
operators.add("Array.__getitem__", lambda x: x[x > 0], ROWS, form="mask", kind=HOST)
operators.add("Array.__setitem__", lambda x, y: assigned(x, np.s_[::2], y), ROWS, s(33))
operators.add("Array.__setitem__", lambda x: assigned(x, np.s_[1:], 3), ROWS, form="number")
operators.add(
    "Array.__setitem__", lambda x: assigned(x, np.s_[:, ::2], 3), ROWS, form="number-strided"
)
operators.add("Array.__setitem__", lambda x, i: assigned(x, i, 3), ROWS, INDICES, form="positions")
operators.add("Array.__setitem__", lambda x, y: assigned(x, x > 0, y), ROWS, s(), form="mask")
operators.add(
    "Array.__setitem__",
    lambda x, y: assigned(x, x > 0, y),
    *(s(30, low=1), s(30)),
    form="mask-values",
    kind=HOST,
)
operators.add(
    "Array.__setitem__",
    lambda x: assigned(x, 0, np.ones(33, np.float32)),
    ROWS,
    form="host",
    kind=HOST,
)
operators.add("Array.__iter__", list, s(4, 9), kind=VIEW)
for name, call in {"bool": bool, "int": int, "float": float, "complex": complex}.items():
    operators.add(f"Array.__{name}__", call, ONE, kind=HOST)
operators.add("Array.__index__", operator.index, ONE, kind=HOST)
operators.add("Array.__contains__", lambda x: 3 in x, ROWS, kind=HOST)
operators.add("Array.__format__", lambda x: f"{x:.3f}", ONE, kind=HOST)
for name in ("floor", "ceil", "trunc"):
    operators.add(f"Array.__{name}__", getattr(math, name), ONE, kind=HOST)
operators.add("Array.__round__", round, ROWS)
operators.add("Array.__repr__", repr, ROWS, kind=HOST)
operators.add("Array.__reduce__", lambda x: x.__reduce__()[1][0].tobytes(), ROWS, kind=HOST)

methods = Table("methods")
methods.add("Array.numpy", lambda x: x.numpy().tobytes(), ROWS, kind=HOST)
methods.add("Array.item", lambda x: x.item(), ONE, kind=HOST)
methods.add("Array.tolist", lambda x: x.tolist(), ROWS, kind=HOST)
methods.add("Array.real", lambda x: x.real, s(40, 33, dtype="complex64"), kind=VIEW)
methods.add("Array.imag", lambda x: x.imag, s(40, 33, dtype="complex64"), kind=VIEW)
methods.add("Array.conj", lambda x: x.conj(), s(40, 33, dtype="complex64"))
methods.add("Array.conjugate", lambda x: x.conjugate(), s(40, 33, dtype="complex64"))
methods.add("Array.clip", lambda x: x.clip(-1, 1), ROWS)
methods.add("Array.round", lambda x: x.round(2), ROWS)
methods.add("Array.T", lambda x: x.T, ROWS, kind=VIEW)
methods.add("Array.mT", lambda x: x.mT, s(2, 5, 7), kind=VIEW)
methods.add("Array.__dlpack__", lambda x: kw.from_dlpack(Foreign(x)), ROWS, kind=VIEW)
methods.add("Array.copy", lambda x: x.copy(), ROWS)
methods.add("Array.copy", lambda x: x.copy(), s(70, 66, layout="turned"), form="tiles")
methods.add("Array.copy", lambda x: x.copy(), s(40, 33, dtype="uint8", layout="gaps"))
methods.add("Array.astype", lambda x: x.astype("int8"), s(N, low=-99, high=99))
methods.add("Array.astype", lambda x: x.astype("float32"), s(40, 33, dtype="bfloat16"))
methods.add("Array.view", lambda x: x.view("int32"), ROWS, kind=VIEW)
methods.add("Array.reshape", lambda x: x.reshape(33, 40), ROWS, kind=VIEW)
methods.add("Array.reshape", lambda x: x.reshape(-1), s(40, 33, layout="turned"), form="copy")
methods.add("Array.transpose", lambda x: x.transpose(1, 0), ROWS, kind=VIEW)
methods.add("Array.swapaxes", lambda x: x.swapaxes(0, 1), ROWS, kind=VIEW)
methods.add("Array.squeeze", lambda x: x.squeeze(), s(1, 9, 1), kind=VIEW)
methods.add("Array.ravel", lambda x: x.ravel(), ROWS, kind=VIEW)
methods.add("Array.flatten", lambda x: x.flatten(), ROWS)
methods.add("Array.fill", lambda x: x.fill(3), ROWS)
methods.add("Array.to", lambda x: x.to(x.device), ROWS, kind=VIEW)
methods.add("Array.to_device", lambda x: x.to_device(x.device), ROWS, kind=VIEW)
methods.add("Array.record_stream", lambda x: x.record_stream(kw.Stream()), ROWS, kind=VIEW)
methods.add("Array.repeat", lambda x: x.repeat(3, axis=1), ROWS)
methods.add("Array.take", lambda x, i: x.take(i, axis=0), ROWS, INDICES)
methods.add("Array.sort", lambda x: x.sort(), ROWS)
methods.add("Array.argsort", lambda x: x.argsort(), ROWS)
methods.add("Array.argpartition", lambda x: x.argpartition(2), ROWS)
methods.add("Array.searchsorted", lambda x, y: kw.sort(x).searchsorted(y), s(40), ROWS)
methods.add("Array.choose", lambda i, x: i.choose([x, x]), s(40, dtype="int32", high=2), s(40))
methods.add("Array.dot", lambda x, y: x.dot(y), s(9, 9), s(9, 9))
methods.add("Array.trace", lambda x: x.trace(), ROWS)
methods.add("Array.diagonal", lambda x: x.diagonal(), ROWS, kind=VIEW)
methods.add("Array.nonzero", lambda x: x.nonzero(), ROWS, kind=HOST)
methods.add("Array.cumsum", lambda x: x.cumsum(1), ROWS)
methods.add("Array.cumprod", lambda x: x.cumprod(0), ROWS)
for name in ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"):
    methods.add(f"Array.{name}", lambda x, f=name: getattr(x, f)(axis=1), ROWS)

TABLES = (creation, elementwise, operators, methods)
