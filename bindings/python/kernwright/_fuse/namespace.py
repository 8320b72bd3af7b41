"""What `kw` is inside a fused function: the functions by their standard names, recording."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernwright._fuse import types, views
from kernwright._fuse.operations import ALIASES, OPERATIONS, REDUCTIONS
from kernwright._fuse.values import Value, apply, reduce
from kernwright.errors import InvalidArgument


def _elementwise(name: str) -> Any:
    arity = OPERATIONS[name].arity

    def function(*args: Any, **options: Any) -> Value:
        if len(args) != arity or options:
            raise InvalidArgument(
                f"{name}() in a fused function takes {arity} operand{'s'[: arity != 1]}, got "
                f"{len(args)}{''.join(f' and {key}=' for key in options)}"
            )
        return apply(name, *args)

    function.__name__ = name
    return function


def _reduction(kind: str) -> Any:
    def function(
        x: Any, /, axis: Any = None, *, keepdims: bool = False, dtype: Any = None
    ) -> Value:
        if not isinstance(x, Value):
            raise InvalidArgument(f"{kind}() in a fused function takes one of its values")
        return reduce(kind, x if dtype is None else x.astype(dtype), axis, keepdims)

    function.__name__ = kind
    return function


def clip(x: Value, /, min: Any = None, max: Any = None) -> Value:
    return x.clip(min, max)


def astype(x: Value, dtype: Any, /, *, copy: bool = True) -> Value:
    return x.astype(dtype)


def expand_dims(x: Value, /, *, axis: int = 0) -> Value:
    at = axis + x.ndim + 1 if axis < 0 else axis
    return x[(*((slice(None),) * at), None)]


def squeeze(x: Value, /, axis: Any = None) -> Value:
    if axis is None:
        axis = tuple(a for a, n in enumerate(x.shape) if n == 1)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a + x.ndim if a < 0 else a for a in axes)
    return Value(x._graph, views.squeeze(x._graph, x._node, axes))


def reshape(x: Value, /, shape: Any) -> Value:
    return x.reshape(shape)


def permute_dims(x: Value, /, axes: Any) -> Value:
    return x.transpose(axes)


def broadcast_to(x: Value, /, shape: Any) -> Value:
    return Value(x._graph, views.broadcast_to(x._graph, x._node, tuple(shape)))


def zeros_like(x: Value, /, *, dtype: Any = None) -> Value:
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Value, /, *, dtype: Any = None) -> Value:
    return full_like(x, 1, dtype=dtype)


def full_like(x: Value, /, fill_value: Any, *, dtype: Any = None) -> Value:
    wanted = types.as_dtype(x.dtype if dtype is None else dtype)
    value = Value(x._graph, x._graph.cast(x._graph.constant(fill_value), wanted))
    return apply("where", apply("equal", x, x), value, value)


def var(x: Value, /, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Value:
    return x.var(axis, correction=correction, keepdims=keepdims)


def std(x: Value, /, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Value:
    return x.std(axis, correction=correction, keepdims=keepdims)


def softmax(x: Value, axis: Any = -1) -> Value:
    wide = _wide(x)
    exponentials = apply("exp", wide - reduce("max", wide, axis, True))
    return (exponentials / reduce("sum", exponentials, axis, True)).astype(x.dtype)


def log_softmax(x: Value, axis: Any = -1) -> Value:
    wide = _wide(x)
    shifted = wide - reduce("max", wide, axis, True)
    total = reduce("sum", apply("exp", shifted), axis, True)
    return (shifted - apply("log", total)).astype(x.dtype)


def logsumexp(x: Value, axis: Any = -1, *, keepdims: bool = False) -> Value:
    wide = _wide(x)
    most = reduce("max", wide, axis, True)
    finite = apply("where", apply("isfinite", most), most, 0.0)
    total = reduce("sum", apply("exp", wide - finite), axis, True)
    result = (apply("log", total) + finite).astype(x.dtype)
    if keepdims:
        return result
    axes = axis if isinstance(axis, tuple) else range(x.ndim) if axis is None else (axis,)
    return squeeze(result, tuple(axes))


def rms_norm(x: Value, weight: Any = None, *, eps: float = 1e-6) -> Value:
    wide = _wide(x)
    result = wide * apply("rsqrt", reduce("mean", apply("square", wide), -1, True) + eps)
    result = result if weight is None else result * weight
    return result.astype(x.dtype)


def layer_norm(x: Value, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Value:
    wide = _wide(x)
    centred = wide - reduce("mean", wide, -1, True)
    result = centred * apply("rsqrt", reduce("mean", apply("square", centred), -1, True) + eps)
    result = result if weight is None else result * weight
    return (result if bias is None else result + bias).astype(x.dtype)


def sigmoid(x: Value) -> Value:
    return 1.0 / (1.0 + apply("exp", -x))


def silu(x: Value) -> Value:
    return x / (1.0 + apply("exp", -x))


def relu(x: Value) -> Value:
    return apply("maximum", x, 0)


def gelu(x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        inner = 0.7978845608028654 * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + apply("tanh", inner))
    return 0.5 * x * (1.0 + apply("erf", x * 0.7071067811865476))


def softplus(x: Value) -> Value:
    return apply("logaddexp", x, 0.0)


def _wide(x: Value) -> Value:
    """In float32 at least, as the library's own functions compute."""
    return x.astype(types.compute_dtype(x.dtype)) if types.kind_of(x.dtype) == "f" else x * 1.0


class Namespace(SimpleNamespace):
    """Names the functions that can be fused; another name raises and says so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import kernwright as kw

        try:
            value = getattr(kw, name)
        except AttributeError:
            value = None
        if name in vars(kw)["_DTYPES"] or isinstance(value, type):
            return value
        raise InvalidArgument(
            f"kw.{name} cannot be fused: fused functions have elementwise functions, where, clip, "
            f"astype, basic views and {', '.join(REDUCTIONS)}; call it outside"
        )


_functions: dict[str, Any] = {
    **{name: _elementwise(name) for name in OPERATIONS},
    **{kind: _reduction(kind) for kind in REDUCTIONS},
}
_functions |= {alias: _functions[name] for alias, name in ALIASES.items()}
_functions |= {
    f.__name__: f
    for f in (clip, astype, expand_dims, squeeze, reshape, permute_dims, broadcast_to, zeros_like)
}
_functions |= {f.__name__: f for f in (ones_like, full_like, var, std, logsumexp)}
_functions |= {"transpose": permute_dims, "amax": _functions["max"], "amin": _functions["min"]}
_nn = (softmax, log_softmax, rms_norm, layer_norm, sigmoid, silu, relu, gelu, softplus)
NAMESPACE = Namespace(
    __name__="kernwright", **_functions, nn=Namespace(**{f.__name__: f for f in _nn}), newaxis=None,
    pi=3.141592653589793, e=2.718281828459045, inf=float("inf"), nan=float("nan"),
)  # fmt: skip
Value._namespace = NAMESPACE
