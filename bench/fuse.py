"""Twenty chains through kw.fuse: microseconds, bytes a second beside a copy, and the error.

Peers where they are installed: torch.compile, and cupy.fuse for the chains that it takes. On the
simulated device the arrays are small and the times say nothing about a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import harness
import kernwright as kw

Chain = Callable[..., Any]


class Case(NamedTuple):
    """A chain of operations in the words of `xp` (kw, numpy, torch-like by name), its shapes."""

    name: str
    chain: Callable[[Any], Chain]
    shapes: list[str]  # "mn", "n", "m1", of rows m and columns n
    dtype: str
    cupy: bool  # whether cupy.fuse takes it


def axis(xp: Any) -> dict[str, Any]:
    return {"dim": -1, "keepdim": True} if xp.__name__ == "torch" else {
        "axis": -1, "keepdims": True}  # fmt: skip


def most(xp: Any, x: Any) -> Any:
    return xp.amax(x, **axis(xp)) if xp.__name__ == "torch" else x.max(**axis(xp))


def softmax(xp: Any) -> Chain:
    def chain(x: Any) -> Any:
        e = xp.exp(x - most(xp, x))
        return e / e.sum(**axis(xp))

    return chain


def rms_norm(xp: Any) -> Chain:
    return lambda x, w: x / xp.sqrt((x * x).mean(**axis(xp)) + 1e-6) * w


def add_rms_norm(xp: Any) -> Chain:
    def chain(x: Any, r: Any, w: Any) -> Any:
        total = x + r
        return total, total / xp.sqrt((total * total).mean(**axis(xp)) + 1e-6) * w

    return chain


def layer_norm(xp: Any) -> Chain:
    def chain(x: Any, w: Any, b: Any) -> Any:
        centred = x - x.mean(**axis(xp))
        return centred / xp.sqrt((centred * centred).mean(**axis(xp)) + 1e-5) * w + b

    return chain


def gelu(xp: Any) -> Chain:
    return lambda x: 0.5 * x * (1 + xp.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def log_softmax(xp: Any) -> Chain:
    def chain(x: Any) -> Any:
        shifted = x - most(xp, x)
        return shifted - xp.log(xp.exp(shifted).sum(**axis(xp)))

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


CASES = [
    Case("axpy", lambda xp: lambda x, y: 2.5 * x + y, ["mn", "mn"], "float32", True),
    Case("polynomial", lambda xp: lambda x: ((x * 0.1 + 0.2) * x + 0.3) * x + 0.4, ["mn"],
         "float32", True),
    Case("gelu", gelu, ["mn"], "float32", True),
    Case("gelu float16", gelu, ["mn"], "float16", True),
    Case("silu", lambda xp: lambda x: x / (1 + xp.exp(-x)), ["mn"], "float32", True),
    Case("swiglu", swiglu, ["mn", "mn"], "float32", True),
    Case("bias gelu", lambda xp: lambda x, b: gelu(xp)(x + b), ["mn", "n"], "float32", True),
    Case("scale rows", lambda xp: lambda x, s: x * s + 1, ["mn", "m1"], "float32", True),
    Case("distance", lambda xp: lambda x, y: xp.sqrt(x * x + y * y), ["mn", "mn"], "float32", True),
    Case("momentum", momentum, ["mn", "mn", "mn"], "float32", True),
    Case("sum of squares", lambda xp: lambda x: (x * x).sum(-1), ["mn"], "float32", True),
    Case("whole sum", lambda xp: lambda x: (x * x).sum(), ["mn"], "float32", True),
    Case("softmax", softmax, ["mn"], "float32", False),
    Case("softmax float16", softmax, ["mn"], "float16", False),
    Case("log softmax", log_softmax, ["mn"], "float32", False),
    Case("rms norm", rms_norm, ["mn", "n"], "float32", False),
    Case("add rms norm", add_rms_norm, ["mn", "mn", "n"], "float32", False),
    Case("layer norm", layer_norm, ["mn", "n", "n"], "float32", False),
    Case("rotate pairs", rotate, ["mn", "mn", "mn"], "float32", False),
    Case("normalise rows", lambda xp: lambda x: (x - x.mean(**axis(xp))) / most(xp, x), ["mn"],
         "float32", False),
]  # fmt: skip


def inputs(case: Case, rows: int, columns: int) -> list[np.ndarray[Any, Any]]:
    shapes = {"mn": (rows, columns), "n": (columns,), "m1": (rows, 1)}
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shapes[s]).astype(case.dtype) for s in case.shapes]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def error(results: Any, case: Case, values: list[np.ndarray[Any, Any]]) -> float:
    """The largest ||result - reference|| / ||reference||, against NumPy in float64."""
    expected = as_tuple(case.chain(np)(*(v.astype("float64") for v in values)))
    return max(
        float(np.linalg.norm(r.numpy().astype("float64") - e) / np.linalg.norm(e))
        for r, e in zip(as_tuple(results), expected, strict=True)
    )


def peers(case: Case, values: list[np.ndarray[Any, Any]]) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    if kw.current_device().is_simulated:
        return found
    try:
        import torch

        tensors = [torch.from_numpy(v).cuda() for v in values]
        compiled = torch.compile(case.chain(torch))
        found["torch.compile"] = lambda: compiled(*tensors)
    except Exception as problem:
        print("torch:", problem, file=sys.stderr)
    if case.cupy:
        try:
            import cupy

            arrays = [cupy.asarray(v) for v in values]
            fused = cupy.fuse()(case.chain(cupy))
            found["cupy.fuse"] = lambda: fused(*arrays)
        except Exception as problem:
            print("cupy:", problem, file=sys.stderr)
    return found


def measure(call: Callable[[], Any], simulated: bool) -> float:
    """Microseconds a call, on the device."""
    if simulated:
        return float(harness.alternate({"call": call}, calls=1, rounds=3)["call"]["min"])
    return float(kw.time_kernel(call).median) * 1e3


def row(case: Case, rows: int, columns: int, simulated: bool, ceiling: float) -> dict[str, Any]:
    values = inputs(case, rows, columns)
    arrays = [kw.asarray(v) for v in values]
    fused = kw.fuse(case.chain(kw))
    results = fused(*arrays)
    moved = sum(a.nbytes for a in arrays) + sum(r.nbytes for r in as_tuple(results))
    times = {"kernwright": measure(lambda: fused(*arrays), simulated)}
    times |= {name: measure(call, simulated) for name, call in peers(case, values).items()}
    rate = moved / times["kernwright"] * 1e-3
    return {
        "name": case.name, "cupy_takes_it": case.cupy, "kernels": len(fused.kernels),
        "bytes": moved, "error": error(results, case, values),
        "us": {name: round(t, 2) for name, t in times.items()},
        "gb_per_s": round(rate, 1), "of_copy": round(rate / ceiling, 3),
    }  # fmt: skip


def main() -> None:
    options = harness.arguments(__doc__ or "", "fuse")
    simulated = kw.current_device().is_simulated
    rows, columns = (16, 256) if simulated else (16384, 4096)
    source = kw.ones((rows, columns))
    target = kw.empty_like(source)
    time = measure(lambda: target.__setitem__(..., source), simulated)
    ceiling = 2 * source.nbytes / time * 1e-3
    chains = [row(case, rows, columns, simulated, ceiling) for case in CASES]
    harness.write(options.output, {
        "machine": harness.machine(), "rows": rows, "columns": columns,
        "copy_gb_per_s": round(ceiling, 1), "chains": chains,
    })  # fmt: skip


if __name__ == "__main__":
    main()
