"""Cost of x + y and of small products from Python: ours, the driver's loop, torch and CuPy.

Each of ours stands once more as "..., recorded": the same call inside of a recording of gradients,
the release of the recording included.

Host time of a call in a loop of 2000, all in one process and in turn (see launch_overhead.py). An
operator allocates its result, launches, and drops the previous result. The products are of float16,
and short enough that the host takes longer than the device. Without a GPU the figures include the
kernel's execution on the simulated device: few calls, and ours alone.
"""

from __future__ import annotations

import operator
import os
import pathlib
import timeit
from typing import Any

import numpy as np
from launch_overhead import LOOP, Driver

import harness
import kernwright as kw

N = 1024
PRODUCT = (128, 256, 256)  # m, n, k
RAGGED = (127, 250, 256)


def recorded(text: str, names: dict[str, Any], wrt: str) -> harness.Loop:
    """A statement in a loop inside of a recording, with gradients of the arrays named in `wrt`."""
    inside = dict(names)
    loop = timeit.Timer(text, globals=inside)

    def run(calls: int) -> None:
        def repeat(given: dict[str, Any]) -> Any:
            inside.update(given)
            loop.timeit(calls)
            return given

        kw.vjp(repeat, {name: names[name] for name in wrt.split()})

    return harness.Loop(run)


def ours(n: int) -> dict[str, Any]:
    x, y = kw.ones(n), kw.full(n, 2.0)
    rows, out = kw.ones((n // 32, 32)), kw.empty(n)
    for got, expected in (
        (x + y, 3),
        (x * 2.5, 2.5),
        (kw.exp(x), np.exp(np.float32(1))),
        (rows + y[:32], 3),
        (kw.add(x, y, out=out), 3),
    ):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    names = {"kw": kw, "x": x, "y": y, "rows": rows, "row": y[:32], "out": out,
             "iadd": operator.iadd}  # fmt: skip
    recordings = {
        f"kernwright {text}, recorded": recorded(text, names, "x y rows row")
        for text in ("x + y", "x * 2.5", "rows + row", "kw.exp(x)", "rows.T", "rows.sum(axis=1)",
                     "rows[1:]", "x.reshape(-1, 32)")
    }  # fmt: skip
    return {
        **recordings,
        "kernwright x + y": harness.statement("x + y", names),
        "kernwright x * 2.5": harness.statement("x * 2.5", names),
        "kernwright x += y": harness.statement("iadd(out, y)", names),
        "kernwright rows + row": harness.statement("rows + row", names),
        "kernwright kw.add(x, y, out=out)": harness.statement("kw.add(x, y, out=out)", names),
        "kernwright kw.exp(x)": harness.statement("kw.exp(x)", {"kw": kw, "x": x}),
        "kernwright rows.T": harness.statement("rows.T", names),
        "kernwright rows.sum(axis=1)": harness.statement("rows.sum(axis=1)", names),
        "kernwright rows[1:]": harness.statement("rows[1:]", names),
        "kernwright x.reshape(-1, 32)": harness.statement("x.reshape(-1, 32)", names),
        "kernwright kw.empty(n)": harness.statement("kw.empty(n)", {"kw": kw, "n": n}),
    }


def our_products() -> dict[str, Any]:
    subjects = {}
    for name, (m, n, k) in (("", PRODUCT), (", ragged", RAGGED)):
        random = np.random.default_rng(0)
        left, right = (
            random.standard_normal(shape).astype("float16") for shape in ((m, k), (k, n))
        )
        a, b = kw.asarray(left), kw.asarray(right)
        w = b.T.copy()
        expected = left.astype("float64") @ right.astype("float64")
        for got in (a @ b, kw.nn.linear(a, w)):
            error = np.linalg.norm(got.numpy().astype("float64") - expected)
            np.testing.assert_array_less(error, 1e-3 * np.linalg.norm(expected))
        names = {"kw": kw, "a": a, "b": b, "w": w}
        for text in ("a @ b", "kw.nn.linear(a, w)"):
            subjects[f"kernwright {text}{name}"] = harness.statement(text, names)
            subjects[f"kernwright {text}{name}, recorded"] = recorded(text, names, "a b w")
    return subjects


def torch_subjects() -> dict[str, Any]:
    import torch

    x, y = torch.ones(N, device="cuda"), torch.full((N,), 2.0, device="cuda")
    names = {"torch": torch, "x": x, "y": y, "out": torch.empty_like(x),
             "iadd": operator.iadd}  # fmt: skip
    m, n, k = PRODUCT
    half = {"device": "cuda", "dtype": torch.float16}
    operands = {
        "linear": torch.nn.functional.linear,
        "a": torch.ones(m, k, **half),
        "b": torch.ones(k, n, **half),
        "w": torch.ones(n, k, **half),
    }
    return {
        "torch a @ b": harness.statement("a @ b", operands),
        "torch linear(a, w)": harness.statement("linear(a, w)", operands),
        "torch x + y": harness.statement("x + y", names),
        "torch x * 2.5": harness.statement("x * 2.5", names),
        "torch add(x, y, out=out)": harness.statement("torch.add(x, y, out=out)", names),
        "torch x += y": harness.statement("iadd(out, y)", names),
    }


def cupy_subjects() -> dict[str, Any]:
    import cupy as cp

    x, y = cp.ones(N, cp.float32), cp.full(N, 2, cp.float32)
    names = {"cp": cp, "x": x, "y": y, "out": cp.empty_like(x), "iadd": operator.iadd}
    m, n, k = PRODUCT
    operands = {"a": cp.ones((m, k), cp.float16), "b": cp.ones((k, n), cp.float16)}
    return {
        "CuPy a @ b": harness.statement("a @ b", operands),
        "CuPy x + y": harness.statement("x + y", names),
        "CuPy x * 2.5": harness.statement("x * 2.5", names),
        "CuPy add(x, y, out=out)": harness.statement("cp.add(x, y, out=out)", names),
        "CuPy x += y": harness.statement("iadd(out, y)", names),
    }


def recording_cost(times: dict[str, Any]) -> dict[str, float]:
    """What a recording adds to each call, by the medians; less than 1 us is wanted."""
    ends = ", recorded"
    return {
        name.removesuffix(ends): round(time["median"] - times[name.removesuffix(ends)]["median"], 3)
        for name, time in times.items()
        if name.endswith(ends)
    }


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "array_overhead")
    device = kw.current_device()
    document = {"subject": "array_overhead", "unit": "us per call", "machine": harness.machine()}
    if device.is_simulated:
        reduced = harness.alternate(ours(64), device.synchronize, calls=200, rounds=3)
        document |= {"recording": recording_cost(reduced), "python": reduced}
        harness.write(options.output, {**document, "missing": {}})
        return
    folder = os.environ.get("KERNWRIGHT_BENCH_BUILD", "build/release")
    driver = Driver(pathlib.Path(__file__).parents[1] / folder)
    subjects, missing = {**driver.subjects(), **ours(N), **our_products()}, {}
    for make in (torch_subjects, cupy_subjects):
        try:
            subjects.update(make())
        except Exception as error:  # missing or broken packages are named, not hidden
            missing[make.__name__] = repr(error)
    microseconds = harness.alternate(subjects, device.synchronize, rounds=31, reference=LOOP)
    document |= {"recording": recording_cost(microseconds), "python": microseconds}
    harness.write(options.output, {**document, "missing": missing})


if __name__ == "__main__":
    main()
