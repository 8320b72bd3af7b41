"""Chains of operations through kw.fuse, beside torch.compile and cupy.fuse of the same text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._table.work import (
    TOLERANCES,
    Operation,
    Shape,
    Work,
    as_tuple,
    by_rows,
    matrix,
    normal,
    whole_result,
)

Chain = Callable[..., Any]


def along(xp: Any) -> dict[str, Any]:
    if xp.__name__ == "torch":
        return {"dim": -1, "keepdim": True}
    return {"axis": -1, "keepdims": True}


def most(xp: Any, x: Any) -> Any:
    return xp.amax(x, **along(xp)) if xp.__name__ == "torch" else x.max(**along(xp))


def softmax(xp: Any) -> Chain:
    def chain(x: Any) -> Any:
        e = xp.exp(x - most(xp, x))
        return e / e.sum(**along(xp))

    return chain


def rms_norm(xp: Any) -> Chain:
    return lambda x, w: x / xp.sqrt((x * x).mean(**along(xp)) + 1e-6) * w


def add_rms_norm(xp: Any) -> Chain:
    def chain(x: Any, r: Any, w: Any) -> Any:
        total = x + r
        return total, total / xp.sqrt((total * total).mean(**along(xp)) + 1e-6) * w

    return chain


def layer_norm(xp: Any) -> Chain:
    def chain(x: Any, w: Any, b: Any) -> Any:
        centred = x - x.mean(**along(xp))
        return centred / xp.sqrt((centred * centred).mean(**along(xp)) + 1e-5) * w + b

    return chain


def tanh_gelu(xp: Any) -> Chain:
    return lambda x: 0.5 * x * (1 + xp.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def log_softmax(xp: Any) -> Chain:
    def chain(x: Any) -> Any:
        shifted = x - most(xp, x)
        return shifted - xp.log(xp.exp(shifted).sum(**along(xp)))

    return chain


def swiglu(xp: Any) -> Chain:
    return lambda x, y: x / (1 + xp.exp(-x)) * y


def momentum(xp: Any) -> Chain:
    def chain(p: Any, g: Any, v: Any) -> Any:
        velocity = v * 0.9 + g
        return p - velocity * 0.01, velocity

    return chain


def rotate(xp: Any) -> Chain:
    return lambda x, c, s: (x[:, ::2] * c[:, ::2] - x[:, 1::2] * s[:, ::2],
                            x[:, 1::2] * c[:, ::2] + x[:, ::2] * s[:, ::2])  # fmt: skip


_SHAPES: dict[str, Callable[[int, int], Shape]] = {
    "mn": lambda m, n: (m, n),
    "n": lambda m, n: (n,),
    "m1": lambda m, n: (m, 1),
}


def _for_cupy(chain: Callable[[Any], Chain]) -> Callable[..., Any]:
    """cupy.fuse names its kernel after the function, so a lambda needs a name."""
    made: list[Chain] = []

    def call(cupy: Any, *arrays: Any) -> Any:
        if not made:
            function = chain(cupy)
            function.__name__ = "chain"
            made.append(cupy.fuse(function))
        return made[0](*arrays)

    return call


def _work(
    chain: Callable[[Any], Chain], shapes: str, shape: Shape, dtype: str, cupy: bool, whole: bool
) -> Work:
    letters = shapes.split()
    arrays = [normal(_SHAPES[s](*shape), dtype, i) for i, s in enumerate(letters)]
    fused = kw.fuse(chain(kw))
    results = as_tuple(fused(*arrays))
    shared = [i for i, s in enumerate(letters) if s == "n"]
    compiled: Any = lambda torch, *tensors: chain(torch)(*tensors)  # noqa: E731
    return Work(
        arrays,
        fused,
        sum(a.nbytes for a in arrays) + sum(r.nbytes for r in results),
        whole_result(chain(np), arrays) if whole else by_rows(chain(np), arrays, shared),
        tolerance=TOLERANCES[dtype] * 5,
        peers={"compile": compiled} | ({"cupy": _for_cupy(chain)} if cupy else {}),
    )


def _chain(
    name: str, chain: Callable[[Any], Chain], shapes: str, cupy: bool = True,
    dtypes: Any = ("float32",), whole: bool = False,
) -> Operation:  # fmt: skip
    return Operation(
        f"fused {name}", "chains",
        lambda shape, dtype: _work(chain, shapes, shape, dtype, cupy, whole),
        ((16384, 4096),), (16, 256), matrix, dtypes, ("float32", "float16", "float64"),
    )  # fmt: skip


OPERATIONS = [
    _chain("axpy", lambda xp: lambda x, y: 2.5 * x + y, "mn mn"),
    _chain("polynomial", lambda xp: lambda x: ((x * 0.1 + 0.2) * x + 0.3) * x + 0.4, "mn"),
    _chain("gelu", tanh_gelu, "mn", dtypes=("float32", "float16")),
    _chain("silu", lambda xp: lambda x: x / (1 + xp.exp(-x)), "mn"),
    _chain("swiglu", swiglu, "mn mn"),
    _chain("bias gelu", lambda xp: lambda x, b: tanh_gelu(xp)(x + b), "mn n"),
    _chain("scale rows", lambda xp: lambda x, s: x * s + 1, "mn m1"),
    _chain("distance", lambda xp: lambda x, y: xp.sqrt(x * x + y * y), "mn mn"),
    _chain("momentum", momentum, "mn mn mn"),
    _chain("sum of squares", lambda xp: lambda x: (x * x).sum(-1), "mn"),
    _chain("whole sum", lambda xp: lambda x: (x * x).sum(), "mn", whole=True),
    _chain("softmax", softmax, "mn", False, ("float32", "float16")),
    _chain("log softmax", log_softmax, "mn", False),
    _chain("rms norm", rms_norm, "mn n", False),
    _chain("add rms norm", add_rms_norm, "mn mn n", False),
    _chain("layer norm", layer_norm, "mn n n", False),
    _chain("rotate pairs", rotate, "mn mn mn", False),
    _chain("normalise rows",
           lambda xp: lambda x: (x - x.mean(**along(xp))) / most(xp, x), "mn", False),
]  # fmt: skip
