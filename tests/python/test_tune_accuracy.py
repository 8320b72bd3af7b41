"""kernwright.tune.accuracy: arguments that follow a parameter, and the error of outputs."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune.accuracy import (
    AccuracyObserver,
    Tunable,
    TunablePrecision,
    error_metric_from_name,
)

N = 200
A, B = np.random.default_rng(5).standard_normal((2, N))
ADD = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using half = __half;
using bfloat16 = __nv_bfloat16;
template <typename T>
__global__ void add(int n, const T* left, const T* right, T* output) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) output[i] = left[i] + right[i];
}
"""


def added(precisions, **more):
    arguments = [np.int32(N), *(TunablePrecision("real", v) for v in (A, B, np.zeros(N)))]
    given = {"answer": [None, None, None, A + B], "quiet": True, **more}
    return kw.tune.tune_kernel(
        "add<real>", ADD, N, arguments, {"block_size_x": [64], "real": precisions}, **given
    )


def test_the_error_of_each_precision_is_that_of_numpy():
    precisions = {"float": np.float32, "double": np.float64, "half": np.float16}
    results, env = added(
        list(precisions),
        observers=[AccuracyObserver("RMSE", "error_rmse"), AccuracyObserver("max error", "most")],
        objective="error_rmse", objective_higher_is_better=False,
    )  # fmt: skip
    for row in results:
        dtype = precisions[row["real"]]
        output = (A.astype(dtype) + B.astype(dtype)).astype(np.float64)
        difference = A + B - output
        np.testing.assert_allclose(row["error_rmse"], np.sqrt(np.mean(difference**2)), rtol=1e-12)
        np.testing.assert_allclose(row["most"], np.abs(difference).max(), rtol=1e-12)
    assert env["best_config"]["real"] == "double" and env["best_config"]["error_rmse"] == 0
    assert env.session.best.config["real"] == "double"


def test_without_an_observer_the_answer_is_compared():
    results, _ = added(["double", "half"])
    assert ["__error__" in row for row in results] == [False, True]
    results, _ = added(["double", "half"], atol=0.1)
    assert ["__error__" in row for row in results] == [False, False]


def test_bfloat16_is_a_precision_where_its_package_is_there():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    results, _ = added(["bfloat16"], observers=[AccuracyObserver("MRE")])
    wanted = (A.astype(ml_dtypes.bfloat16) + B.astype(ml_dtypes.bfloat16)).astype(np.float64)
    np.testing.assert_allclose(
        results[0]["error"], np.mean(np.abs(A + B - wanted) / np.abs(A + B)), rtol=1e-12
    )


def test_an_argument_may_have_another_layout_for_a_value():
    text = """__global__ void column(const float* m, float* out) {
      int i = threadIdx.x;
      out[i] = m[ROWS ? i * 8 + 3 : 3 * 64 + i];
    }"""
    matrix = np.random.default_rng(6).random((64, 8)).astype(np.float32)
    layouts = {1: matrix, 0: np.ascontiguousarray(matrix.T)}
    for key in ("ROWS", "1 - (1 - ROWS)", lambda values: values["ROWS"]):
        results, _ = kw.tune.tune_kernel(
            "column", text, 64, [Tunable(key, layouts), np.zeros(64, np.float32)],
            {"ROWS": [0, 1], "block_size_x": [64]}, answer=[None, matrix[:, 3]], quiet=True,
        )  # fmt: skip
        assert [row["ROWS"] for row in results if "__error__" not in row] == [0, 1]
    missing = Tunable("ROWS", {1: matrix})
    with pytest.raises(kw.NameNotFound, match="no array for 0; it has: 1"):
        kw.tune.tune_kernel(
            "column", text, 64, [missing, np.zeros(64, np.float32)],
            {"ROWS": [0, 1], "block_size_x": [64]}, quiet=True,
        )  # fmt: skip


def test_one_launch_takes_the_array_of_its_precision():
    arguments = [np.int32(N), *(TunablePrecision("real", v) for v in (A, B, np.zeros(N)))]
    params = {"block_size_x": 64, "real": "half"}
    *_, made = kw.tune.run_kernel("add<real>", ADD, N, arguments, params)
    np.testing.assert_array_equal(made, A.astype(np.float16) + B.astype(np.float16))


def test_values_that_a_tunable_argument_has():
    pair = Tunable("way", [np.zeros(1), np.ones(2)])
    assert pair({"way": 1}).size == 2 and len(pair) == 2
    scale = TunablePrecision("real", np.float64(0.1), ["f16", "float", 64])
    assert {name: value.dtype.name for name, value in scale.items()} == {
        "f16": "float16", "float": "float32", 64: "float64",
    }  # fmt: skip
    assert scale({"real": "f16"}) == np.float16(0.1)
    assert set(TunablePrecision("real", [1.0])) >= {"half", "float", "double"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tunable("key", {}), lambda: Tunable("key", 5), lambda: Tunable(3, [A]),
        lambda: TunablePrecision("key", A, ["quarter"]), lambda: AccuracyObserver(3),
        lambda: AccuracyObserver("largest"), lambda: error_metric_from_name("rsme"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(make):
    with pytest.raises((kw.ArgumentError, kw.InvalidArgument)):
        make()


def host_metrics():
    """Loops over pairs of values, by the names that mean them."""
    a, b = np.array([1.0, 2.0, -4.0, 0.0]), np.array([1.5, 2.0, -3.0, 1e-9])
    pairs = list(zip(a, b, strict=True))
    size = [max(abs(x), 1e-8) for x in a]
    square = sum((x - y) ** 2 for x, y in pairs) / 4
    relative = [abs(x - y) / s for (x, y), s in zip(pairs, size, strict=True)]
    yield a, b, square, ("MSE", "mean square error", "Mean-Squared_Error")
    yield a, b, square**0.5, ("RMSE", "root mean squared")
    yield a, b, (square / (sum(x * x for x in a) / 4)) ** 0.5, ("NRMSE",)
    yield a, b, sum(abs(x - y) for x, y in pairs) / 4, ("MAE", "absolute error", "avg abs")
    yield a, b, sum(relative) / 4, ("MRE", "relative error", "mean rel")
    yield a, b, (sum(r * r for r in relative) / 4) ** 0.5, ("RMSRE",)
    yield a, b, max(abs(x - y) for x, y in pairs), ("max", "maximum absolute error", "max abs")
    yield a, b, max(relative), ("max rel", "maximum relative")
    positive = np.abs(a) + 1
    logs = [np.log10(x + 1e-8) - np.log10(2 * x + 1e-8) for x in positive]
    yield positive, 2 * positive, sum(map(abs, logs)) / 4, ("MALE", "mean abs log error")
    yield positive, 2 * positive, (sum(x * x for x in logs) / 4) ** 0.5, ("RMSLE",)


@pytest.mark.parametrize(("a", "b", "wanted", "names"), list(host_metrics()))
def test_metrics_are_those_of_a_loop(a, b, wanted, names):
    for name in names:
        assert error_metric_from_name(name)(a, b) == pytest.approx(wanted, rel=1e-12)
        assert error_metric_from_name(name)(a.astype(np.float32), b) == pytest.approx(wanted, 1e-3)


def test_the_largest_error_of_all_outputs_counts_and_nan_is_no_number():
    observer = AccuracyObserver(lambda wanted, got: np.abs(wanted - got).max(), "most")
    observer.process_output([A, None, B], [A + 1, B, B + 3])
    assert observer.get_results() == {"most": pytest.approx(3)}
    observer.process_output([A, B], [A + np.nan, B])
    assert np.isnan(observer.get_results()["most"])
    observer.process_output([A, B], [A, B + np.nan])
    assert np.isnan(observer.get_results()["most"])
    for answer in (None, [None, None]):
        with pytest.raises(kw.InvalidArgument, match="wants answer="):
            observer.process_output(answer, [A, B])
    complex_error = error_metric_from_name("max")(np.array([1 + 1j]), np.array([1 - 1j]))
    assert complex_error == 2.0
