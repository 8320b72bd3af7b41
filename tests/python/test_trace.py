"""kw.trace: the lines that one thread executed, with values, up to the end or to a fault."""

import json
import math
import pathlib

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

POLYNOMIAL = r"""
__device__ __forceinline__ float square(float v) {
    return v * (v - 1.0f);
}
__global__ void polynomial(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[i] = square(v) + 3.0f;
}
"""


@pytest.fixture
def polynomial():
    return kw.kernel(POLYNOMIAL)


def arrays(n=64):
    return kw.asarray(np.arange(n, dtype=np.float32)), kw.zeros(n, "float32")


def lines_of(trace):
    found = []
    for step in trace.steps:
        if step.line and (not found or found[-1] != step.line):
            found.append(step.line)
    return found


def test_values_of_a_thread(polynomial):
    x, y = arrays()
    with kw.trace(polynomial, block=1, thread=5) as t:
        polynomial[2, 32](x, y, 64)
    (load,) = [a for step in t.steps for a in step.accesses if a.what == "load"]
    (store,) = [a for step in t.steps for a in step.accesses if a.what == "store"]
    assert load.before == (37.0,) and load.after == ()
    assert store.before == (0.0,) and store.after == (37.0 * 36.0 + 3.0,)
    assert (load.space, load.bytes, load.type) == ("global", 4, "f32")
    assert load.address == x.ptr + 37 * 4
    (index,) = [w for step in t.steps for w in step.writes if w.after == 37 and w.type == "s32"]
    assert index.before is None
    assert t.fault == "" and t.printed == ""
    assert t.total == len(t.steps)
    assert y.numpy()[37] == 1335.0


def test_lines_are_those_of_the_text_and_of_the_python_file(polynomial):
    with kw.trace(polynomial, thread=1) as t:
        polynomial[1, 32](*arrays(), 64)
    text = POLYNOMIAL.splitlines()
    whole = pathlib.Path(__file__).read_text().splitlines()
    seen = set()
    for step in t.steps:
        assert pathlib.Path(step.file).name == "test_trace.py"
        assert step.source == text[step.line - 1] == whole[step.file_line - 1]
        seen.add(step.source.strip())
    assert "return v * (v - 1.0f);" in seen and "float v = x[i];" in seen
    assert f"test_trace.py:{t.steps[0].file_line}" in str(t)
    assert "    return v * (v - 1.0f);".strip() in str(t)


def test_a_thread_that_leaves_early(polynomial):
    with kw.trace(polynomial, thread=31) as t:
        polynomial[1, 32](*arrays(), 31)
    (branch,) = [step for step in t.steps if step.taken is not None]
    assert branch.taken
    assert not any(step.accesses for step in t.steps)
    assert 8 not in lines_of(t)


def test_two_dimensions():
    kernel = kw.kernel("""__global__ void place(int* out) {
    int x = threadIdx.x + 1000 * threadIdx.y;
    out[threadIdx.y * blockDim.x + threadIdx.x] = x + 100000 * (blockIdx.x + 10 * blockIdx.y);
}""")
    out = kw.zeros(64, "int32")
    with kw.trace(kernel, block=(1, 2), thread=(3, 4)) as t:
        kernel[(2, 3), (8, 8)](out)
    (store,) = [a for step in t.steps for a in step.accesses]
    assert store.after == (2100000 + 4003,)


def test_a_fault_keeps_what_came_before():
    kernel = kw.kernel("""__global__ void stray(float* x, int far) {
    float v = x[threadIdx.x] + 1;
    x[threadIdx.x] = v;
    if (threadIdx.x == 3) x[far] = v;
    x[threadIdx.x] = 0;
}""")
    x = kw.zeros(32, "float32")
    with pytest.raises(kw.DeviceFault), kw.trace(kernel, thread=3) as t:
        kernel[1, 32](x, 1 << 20)
    last = t.steps[-1]
    assert not last.complete and last.line == 4 and last.source.strip().startswith("if (thread")
    assert all(step.complete for step in t.steps[:-1])
    stored = [a.after for step in t.steps for a in step.accesses if a.what == "store" and a.after]
    assert stored == [(1.0,)]
    assert "out of bounds" in t.fault
    assert "the launch stopped here" in str(t) and "out of bounds" in str(t)


def test_printf_in_order(capfd):
    kernel = kw.kernel(r"""__global__ void talk() {
    for (int i = 0; i < 3; ++i) printf("%d of %d\n", i, (int)threadIdx.x);
}""")
    with kw.trace(kernel, thread=7) as t:
        kernel[1, 32]()
    assert t.printed == "0 of 7\n1 of 7\n2 of 7\n"
    assert capfd.readouterr().out.count("\n") == 96
    assert "printed: 1 of 7" in str(t)


def test_half_values():
    kernel = kw.kernel("""#include <cuda_fp16.h>
__global__ void pair(__half2* x) { x[threadIdx.x] = __hadd2(x[threadIdx.x], x[threadIdx.x]); }""")
    x = kw.asarray(np.tile(np.array([1.5, -2.0], np.float16), 32))
    with kw.trace(kernel, thread=2) as t:
        kernel[1, 32](x)
    sums = [w for step in t.steps for w in step.writes if w.type == "f16x2"]
    assert sums[-1].after == (3.0, -4.0)


def test_limit_and_skip():
    kernel = kw.kernel("""__global__ void count(int* out, int n) {
    int sum = 0;
    for (volatile int i = 0; i < n; ++i) sum += i;
    *out = sum;
}""")
    out = kw.zeros(1, "int32")
    with kw.trace(kernel) as whole:
        kernel[1, 1](out, 50)
    with kw.trace(kernel, limit=10, skip=100) as part:
        kernel[1, 1](out, 50)
    assert [s.instruction for s in part.steps] == [s.instruction for s in whole.steps[100:110]]
    assert part.total == whole.total > 200
    assert f"{whole.total - 110} more steps were left out: the limit is 10" in str(part)


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"block": 2}, r"grid of \(2, 1, 1\)"),
        ({"block": (0, 1)}, r"block \(0, 1, 0\)"),
        ({"thread": 32}, r"\(32, 1, 1\) threads"),
        ({"launch": 1}, "launched 1 time "),
    ],
)
def test_what_is_not_in_the_launch(polynomial, where, named):
    x, y = arrays()
    with pytest.raises(kw.InvalidArgument, match=named):
        with kw.trace(polynomial, **where) as t:
            polynomial[2, 32](x, y, 64)
    assert t.steps == []
    assert (y.numpy() == x.numpy() * (x.numpy() - 1) + 3).all()  # the launch itself ran


def test_a_kernel_that_is_not_launched(polynomial):
    with pytest.raises(kw.InvalidArgument, match="polynomial was launched 0 times"):
        with kw.trace(polynomial):
            pass


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"thread": -1}, kw.InvalidArgument),
        ({"block": (0, 0, 0, 0)}, kw.InvalidArgument),
        ({"thread": ()}, kw.InvalidArgument),
        ({"thread": 1.5}, kw.ArgumentError),
        ({"block": "x"}, kw.ArgumentError),
        ({"limit": -1}, kw.InvalidArgument),
        ({"launch": None}, kw.ArgumentError),
    ],
)
def test_wrong_arguments(polynomial, arguments, error):
    with pytest.raises(error):
        kw.trace(polynomial, **arguments)


def test_only_kernels_are_traced():
    with pytest.raises(kw.ArgumentError, match="takes a kernel, got str"):
        kw.trace("polynomial")


def test_one_trace_at_a_time(polynomial):
    with kw.trace(polynomial):
        with pytest.raises(kw.InvalidArgument, match="traced already"):
            with kw.trace(polynomial):
                pass
        polynomial[1, 32](*arrays(), 32)


def test_a_later_launch(polynomial):
    x, y = arrays()
    with kw.trace(polynomial, thread=4, launch=1) as t:
        polynomial[1, 32](x, y, 32)
        polynomial[1, 32](y, x, 32)
    (load,) = [a for step in t.steps for a in step.accesses if a.what == "load"]
    assert load.before == (15.0,)


def test_under_checks_both_report(polynomial):
    with kw.checks() as report, kw.trace(polynomial, thread=4) as t:
        polynomial[1, 32](kw.empty(32, "float32"), kw.zeros(32, "float32"), 32)
    assert [finding.kind for finding in report] == ["init"]
    assert t.steps[-1].instruction == "ret"


def test_json_and_files(polynomial, tmp_path):
    with kw.trace(polynomial, thread=2) as t:
        polynomial[1, 32](*arrays(), 32)
    data = json.loads(t.to_json())
    assert data["thread"] == [2, 0, 0] and data["total"] == t.total
    assert len(data["steps"]) == t.total
    assert any(write["after"] == 5.0 for step in data["steps"] for write in step["writes"])
    t.save(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == data
    t.save(tmp_path / "t.txt")
    assert (tmp_path / "t.txt").read_text() == str(t)
    assert "polynomial" in repr(t)


def test_special_floats():
    kernel = kw.kernel("__global__ void over(float* x) { x[0] = x[1] / x[2]; x[3] = x[2] / x[2]; }")
    with kw.trace(kernel) as t:
        kernel[1, 1](kw.asarray(np.array([0, 1, 0, 0], np.float32)))
    stored = [a.after[0] for step in t.steps for a in step.accesses if a.what == "store"]
    assert stored[0] == math.inf and math.isnan(stored[1])
    json.loads(t.to_json())


def test_a_gpu_is_refused(polynomial, monkeypatch):
    class Gpu:
        name = "NVIDIA Something"
        is_simulated = False

    monkeypatch.setattr("kernwright._sim.watch._core.current_device", Gpu)
    with pytest.raises(
        kw.InvalidArgument, match=r"simulated device, and NVIDIA Something is a GPU"
    ):
        with kw.trace(polynomial):
            pass
