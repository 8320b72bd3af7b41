"""NumPy arrays copied back from a launch: overlapping ones, lost writes, unwritten elements."""

import itertools
import warnings

import numpy as np
import pytest

import kernwright as kw

ADD = "__global__ void add(float* a, float* b) { a[0] += 1; b[0] += 10; }"
SHIFT = """__global__ void shift(const float* a, float* b, int n) {
    for (int i = 0; i < n; ++i) b[i] = a[i] + 1;
}"""
BACK = {"Out": kw.Out, "InOut": kw.InOut}


def views(x):
    return {
        "all": x,
        "front": x[:8],
        "back": x[8:],
        "even": x[::2],
        "odd": x[1::2],
        "reversed": x[::-1],
        "last": x[-1:],
        "column": x.reshape(4, 4)[:, 1],
        "bytes": x.view("u1")[16:48].view("f4"),
        "none": x[:0],
    }


@pytest.mark.parametrize("wrappers", list(itertools.product(BACK, BACK)))
def test_two_results_must_not_overlap(wrappers):
    kernel = kw.kernel(ADD)
    x = np.zeros(16, "f4")
    for (a, first), (b, second) in itertools.product(views(x).items(), repeat=2):
        if "none" in (a, b):
            continue
        where = np.zeros(16, int)
        for view in views(np.arange(16, dtype="f4"))[a], views(np.arange(16, dtype="f4"))[b]:
            where[view.astype(int)] += 1
        arguments = [BACK[kind](view) for kind, view in zip(wrappers, (first, second), strict=True)]
        x[:] = 0
        if (where > 1).any():
            with pytest.raises(kw.ArgumentError, match=r"parameter 2.*overlaps .* parameter 1"):
                kernel[1, 1](*arguments)
            assert not x.any(), (a, b)
        else:
            kernel[1, 1](*arguments)
            if wrappers == ("InOut", "InOut"):
                assert (first.flat[0], second.flat[0]) == (1, 10), (a, b)


def test_one_array_may_come_in_and_go_out():
    shift = kw.kernel(SHIFT)
    x = np.arange(9, dtype="f4")
    shift[1, 1](kw.In(x), kw.Out(x), 9)
    assert x.tolist() == list(range(1, 10))
    shift[1, 1](kw.In(x[:8]), kw.InOut(x[1:]), 8)
    assert x.tolist() == [1, *range(2, 10)]
    shift[1, 1](kw.In(x[::-1]), kw.Out(x), 9)
    assert x.tolist() == [*range(10, 2, -1), 2]


def test_structured_arrays_overlap_too():
    kernel = kw.kernel("struct S { int a; float b; };\n__global__ void k(S* x, S* y) { x->a = 1; }")
    x = np.zeros(4, [("a", "i4"), ("b", "f4")])
    with pytest.raises(kw.ArgumentError, match="overlaps the one of"):
        kernel[1, 1](kw.InOut(x), kw.InOut(x[1:]))
    kernel[1, 1](kw.InOut(x[:2]), kw.InOut(x[2:]))
    assert x["a"].tolist() == [1, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:.*the results are lost")
def test_what_is_written_to_an_input_is_lost():
    x, y = np.zeros(4, "f4"), np.zeros(4, "f4")
    kw.kernel(ADD)[1, 1](kw.In(x), kw.InOut(y))
    assert (x[0], y[0]) == (0, 10)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
@pytest.mark.parametrize("size", [1, 7, 70000])
def test_what_is_written_to_an_input_is_found(sim, dtype, size):
    kernel = kw.kernel(
        "__global__ void k(void* x, int at, int count) {\n"
        "    for (int i = 0; i < count; i++) ((unsigned char*)x)[at + i] += 1; }"
    )

    def found(at, count, wrapper=kw.In, values=None):
        x = np.arange(size).astype(dtype) if values is None else values
        before = x.copy()
        with kw.checks("init") as report:
            kernel[1, 1](wrapper(x), at, count)
        assert wrapper is kw.InOut or (x == before).all()
        return [(finding.kind, finding.message) for finding in report]

    bytes = size * np.dtype(dtype).itemsize
    assert found(0, 0) == found(0, 1, kw.InOut) == []
    for at, count in {(0, 1), (bytes - 1, 1), (bytes // 2, bytes - bytes // 2)}:
        assert found(at, count) == [
            (
                "init",
                f"k(void* x, int at, int count): parameter 1 (void*) got kw.In, and the kernel has "
                f"changed {count} of its {bytes} bytes, the first at byte {at}",
            )
        ]
    # A non-contiguous view, and one of structs.
    assert len(found(0, 1, values=np.zeros((2, size), dtype).T)) == 1
    assert len(found(0, 1, values=np.zeros(size, [("a", "u1"), ("b", dtype)]))) == 1


WRITE = """template <typename T> __global__ void fill(T* y, int first, int count, int step) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) y[first + i * step] = T(1);
}"""


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 3, 64, 70000])
def test_results_that_nobody_wrote_are_found(sim, dtype, size):
    name = {"uint8": "unsigned char", "int16": "short", "float32": "float", "float64": "double"}
    kernel = kw.kernel(WRITE, name=f"fill<{name[dtype]}>")
    width = np.dtype(dtype).itemsize

    def found(first, count, step=1, wrapper=kw.Out):
        y = np.zeros(size, dtype)
        with kw.checks("init") as report:
            kernel[1, 64](wrapper(y), first, count, step)
        return [finding.message for finding in report]

    assert found(0, size) == []
    assert found(0, 0, wrapper=kw.InOut) == []
    for first, count, step, missing, at in [
        (0, 0, 1, size, 0),
        (0, size - 1, 1, 1, size - 1),
        (1, size - 1, 1, 1, 0),
        (0, (size + 1) // 2, 2, size // 2, 1),
    ]:
        messages = found(first, count, step)
        assert len(messages) == (missing > 0)
        for message in messages:
            assert message.endswith(
                f"parameter 1 ({name[dtype]}*) got kw.Out, and nothing has written "
                f"{missing * width} of the {size * width} bytes that are copied back, the first "
                f"at byte {at * width}"
            )


def test_each_result_has_a_finding_of_its_own(sim):
    kernel = kw.kernel("__global__ void k(int* a, int* b, int* c) { *b = 1; }")
    a, b, c = (np.zeros(1, "i4") for _ in range(3))
    with kw.checks("init") as report:
        for _ in range(2):
            kernel[1, 1](kw.Out(a), kw.Out(b), kw.Out(c))
    assert [(finding.kind, finding.count) for finding in report] == [("init", 2), ("init", 2)]
    assert ["parameter 1" in report[0].message, "parameter 3" in report[1].message] == [True, True]
    assert "kw.InOut" in report[0].hint and "copied back" in str(report)
    with kw.checks("race", "sync") as report:
        kernel[1, 1](kw.Out(a), kw.Out(b), kw.Out(c))
    assert not report
    kernel[1, 1](kw.Out(np.zeros(0, "i4")), kw.Out(b), kw.Out(c))


def test_writes_to_in_are_told_of_on_the_simulated_device(sim):
    both = kw.kernel("__global__ void both(float* x, float* y) { x[threadIdx.x] = *y; *y = 3; }")
    x, y = np.zeros(8, np.float32), np.ones(8, np.float32)
    with pytest.warns(RuntimeWarning, match=r"parameter 1 \(float\*\) got kw\.In.*kw\.InOut\(x\)"):
        both[1, 8](kw.In(x), kw.InOut(y))
    assert not x.any() and y[0] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both[1, 8](kw.InOut(x), kw.InOut(y))
        read = kw.kernel("__global__ void read(float* x, float* y) { y[threadIdx.x] = x[0]; }")
        read[1, 8](kw.In(x[::2]), kw.Out(y))  # a pointer to non-const that is read alone
        read[1, 8](kw.In(np.full(8, np.nan, np.float32)), kw.Out(y))
        copy = kw.kernel("__global__ void copy(const float* x, float* y) { *y = *x + 1; }")
        copy[1, 1](kw.In(y), kw.Out(y[1:2]))  # the result goes to the memory of the input
        with pytest.raises(RuntimeWarning, match="the results are lost"):
            both[1, 4](kw.In(x[::2]), kw.InOut(y))
    with kw.checks("init") as report:  # the check has the finding, and nothing is told twice
        both[1, 8](kw.In(np.ones(8, np.float32)), kw.InOut(y))
    assert report.total
