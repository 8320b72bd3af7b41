"""Slices of kernels and of operations: bit for bit the whole launch, and what is refused."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sliced_kernels import CASES

import kernwright as kw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

CORPUS = [
    case
    for case in corpus.load_cases()
    if np.prod(case["grid"]) > 1 and not corpus.missing_headers(case)
]
KEEPS = {"function_pointers": "table", "constant_memory": "counter"}  # variables of their modules
IDS = [case.name for case in CASES]
MARK = """
__global__ void mark(int* out) { out[blockIdx.x] += blockIdx.x * 100 + gridDim.x; }
"""


def launches_of(case, kernel):
    count = int(np.prod(case.grid)) * case.block - 3
    out = kw.asarray(np.arange(count, dtype=np.int32) % 2)
    kernel[case.grid, case.block, None, case.shared](out, count)
    return out.numpy()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_slices_are_the_whole_launch(case):
    kernel = kw.module(case.text, **case.options)[case.kernel]
    whole = launches_of(case, kernel)
    assert not np.array_equal(whole, np.arange(len(whole)) % 2)
    for max_blocks in (1, 4, 1000):
        np.testing.assert_array_equal(launches_of(case, kernel.slice(max_blocks)), whole)


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_blocks_that_yield_are_the_whole_launch(case):
    kernel = kw.module(case.text, **case.options)[case.kernel]
    words = kw.zeros(2, "uint32")
    np.testing.assert_array_equal(
        launches_of(case, kernel.yielding(words)), launches_of(case, kernel)
    )


@pytest.mark.parametrize("case", CORPUS, ids=[case["name"] for case in CORPUS])
def test_slices_of_recorded_kernels(case, monkeypatch):
    whole = corpus.run(case, kw.current_device())
    plain = corpus.load(case)
    monkeypatch.setattr(corpus, "load", lambda _: plain.slice(1))
    if variable := KEEPS.get(case["name"]):
        with pytest.raises(kw.NotSliceable, match=f"the variable {variable} "):
            corpus.run(case, kw.current_device())
        return
    cut = corpus.run(case, kw.current_device())
    for row, got, expected in zip(case["args"], cut, whole, strict=True):
        if not row.get("order_dependent", False):
            assert got.tobytes() == expected.tobytes()


OPERATIONS = {
    "exp": lambda x: kw.exp(x),
    "sum": lambda x: kw.sum(x, axis=1),
    "softmax": lambda x: kw.nn.softmax(x),
    "layer_norm": lambda x: kw.nn.layer_norm(x, kw.ones(96), kw.zeros(96)),
    "product": lambda x: x @ x.T,
    "product of 16 bits": lambda x: x.astype("float16") @ x.T.astype("float16"),
    "transpose": lambda x: x.T.copy(),
    "cumulative sum": lambda x: kw.cumulative_sum(x, axis=1),
    "sort": lambda x: kw.sort(x, axis=1),
    "attention": lambda x: kw.nn.attention(*[x.reshape(1, 4, 40, 24)] * 3),
    "gelu": lambda x: kw.nn.gelu(x),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_slices_of_operations(name):
    x = kw.asarray(np.random.default_rng(1).standard_normal((40, 96), np.float32))
    whole = OPERATIONS[name](x).numpy()
    with kw.slices(1, strict=True) as cut:
        pieces = OPERATIONS[name](x).numpy()
    assert pieces.tobytes() == whole.tobytes()
    assert cut.launches > 0
    assert cut.queued >= cut.launches
    assert cut.refused == 0


def test_each_slice_is_a_launch_of_its_blocks():
    mark = kw.kernel(MARK)
    out = kw.zeros(10, "int32")
    with kw.slices(4, strict=True) as cut:
        mark[10, 1](out)
        mark[4, 1](out)
    assert (cut.launches, cut.queued) == (2, 4)
    expected = np.arange(10) * 100 + 10
    expected[:4] += np.arange(4) * 100 + 4
    np.testing.assert_array_equal(out.numpy(), expected)


def test_slices_follow_the_current_stream_and_launch_configurations():
    mark = kw.kernel(MARK).slice(3)
    out = kw.zeros(10, "int32")
    stream = kw.Stream()
    mark[10, 1, stream](out)
    mark.launch(kw.LaunchConfig(grid=10, block=1, stream=stream, priority=-1), out)
    stream.synchronize()
    np.testing.assert_array_equal(out.numpy(), 2 * (np.arange(10) * 100 + 10))
    assert mark.name == "mark"
    assert mark.signature == "mark(int* out)"
    assert "slices of 3 blocks" in repr(mark)


def test_slices_in_a_graph():
    mark = kw.kernel(MARK).slice(4)
    out = kw.zeros(10, "int32")
    mark[10, 1](out)  # compiled before the capture
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        mark[10, 1, stream](out)
    assert graph.node_count == 3
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(out.numpy(), 2 * (np.arange(10) * 100 + 10))


def test_host_arrays_come_back_after_the_last_slice():
    host = np.zeros(10, np.int32)
    kw.kernel(MARK).slice(3)[10, 1](kw.InOut(host))
    np.testing.assert_array_equal(host, np.arange(10) * 100 + 10)


def test_a_value_set_in_constant_memory_is_that_of_the_slices():
    module = kw.module("""
__constant__ int factor;
__global__ void scale(int* x) { x[blockIdx.x] = factor * gridDim.x; }""")
    x = kw.zeros(4, "int32")
    for factor in (3, 5):
        module.symbol("factor")[...] = factor
        module["scale"].slice(1)[4, 1](x)
        assert x.numpy().tolist() == [factor * 4] * 4


def test_ptx_is_cut_too():
    source = """
__constant__ int start = 7;
__device__ __noinline__ int place(int a) { return a + gridDim.x * 100 + start; }
extern "C" __global__ void fill(int* x) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    x[block * blockDim.x + threadIdx.x] = place(block) + threadIdx.x;
}"""
    ptx = kw.Program(source, kw.ProgramOptions(arch="compute_80")).compile("ptx")
    for fill in (kw.kernel(ptx), kw.kernel(ptx.code)):
        whole = kw.zeros(2 * 3 * 4 * 8, "int32")
        fill[(2, 3, 4), 8](whole)
        for max_blocks in (1, 5, 24):
            x = kw.zeros_like(whole)
            fill.slice(max_blocks)[(2, 3, 4), 8](x)
            np.testing.assert_array_equal(x.numpy(), whole.numpy())
        x, words = kw.zeros_like(whole), kw.zeros(2, "uint32")
        fill.yielding(words)[(2, 3, 4), 8](x)
        np.testing.assert_array_equal(x.numpy(), whole.numpy())


def test_a_stopped_launch_goes_on_where_it_was():
    kernel = kw.kernel("""
__global__ void step(int* x, unsigned* words, unsigned stop) {
    if (threadIdx.x != 0) return;
    atomicAdd(x + blockIdx.x, blockIdx.x * 10 + gridDim.x);
    if (blockIdx.x == stop) atomicExch(words, 1);
}""")
    x, words = kw.zeros(40, "int32"), kw.zeros(2, "uint32")
    seen = []
    for stop in (5, 17, 30, 99):
        words[0] = 0
        kernel.yielding(words)[40, 32](x, words, stop)
        seen.append(int(words.numpy()[1]))
        assert seen[-1] > stop or stop == 99
    assert seen == sorted(seen)
    np.testing.assert_array_equal(x.numpy(), np.arange(40) * 10 + 40)
    kernel.yielding(words)[40, 32](x, words, 99)  # nothing is left
    np.testing.assert_array_equal(x.numpy(), np.arange(40) * 10 + 40)


REFUSED = {
    "assembler": (
        """__global__ void k(int* x) {
    unsigned b;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(b));
    x[b] = 1;
}""",
        "%ctaid",
    ),
    "state": (
        "__device__ int counter;\n__global__ void k(int* x) { x[0] = atomicAdd(&counter, 1); }",
        "counter",
    ),
    "launch from a launch": (
        """__global__ void k(int* x);
__device__ auto same = &k;
__global__ void k(int* x) { x[0] = same != nullptr; }""",
        "same",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_cut_says_why(name):
    text, word = REFUSED[name]
    kernel = kw.kernel(text, "k")
    x = kw.zeros(4, "int32")
    for _ in range(2):  # the second time from memory
        with pytest.raises(kw.NotSliceable) as caught:
            kernel.slice(1)[2, 1](x)
        assert word in str(caught.value)
        assert str(caught.value).startswith("k cannot be cut") or name == "assembler"
    with kw.slices(1) as cut:
        kernel[2, 1](x)
    assert (cut.refused, cut.queued) == (1, 1)
    assert word in cut.reason


def test_kernels_of_files_that_a_text_includes_are_refused(tmp_path):
    (tmp_path / "k.cuh").write_text("__global__ void k(int* x) { x[blockIdx.x] = 1; }")
    kernel = kw.kernel('#include "k.cuh"\n', "k", include_dirs=[str(tmp_path)])
    with pytest.raises(kw.NotSliceable, match="not in the text"):
        kernel.slice(1)[2, 1](kw.zeros(4, "int32"))


def test_cooperative_launches_are_refused():
    mark = kw.kernel(MARK).slice(1)
    with pytest.raises(kw.NotSliceable, match="cooperative"):
        mark.launch(kw.LaunchConfig(grid=2, block=1, cooperative=True), kw.zeros(4, "int32"))


def test_errors_of_launches_are_as_before():
    mark = kw.kernel(MARK)
    out = kw.zeros(4, "int32")
    for grid, block in ((0, 1), (1, 0), (1, 2000), ((1, 70000), 1)):
        with pytest.raises(kw.LaunchConfigError) as whole:
            mark[grid, block](out)
        with pytest.raises(kw.LaunchConfigError) as cut:
            mark.slice(2)[grid, block](out)
        assert str(cut.value) == str(whole.value)
    with pytest.raises(kw.ArgumentError):
        mark.slice(2)[4, 1]()
    with pytest.raises(kw.ArgumentError):
        mark.slice(2)[4, 1](kw.zeros(4))
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel("__global__ void k(int* x) {\n  x = y;\n}").slice(1)[2, 1](out)
    assert caught.value.diagnostics[0].line == 2


def test_faults_name_the_line_of_the_text(sim):
    past = kw.kernel("""__global__ void past(int* x) {
    int i = blockIdx.x;
    x[i] = gridDim.x;
}""")
    with pytest.raises(kw.DeviceFault) as caught:
        past.slice(2)[9, 1](kw.zeros(5, "int32"))
        kw.synchronize()
    assert caught.value.kind == "bounds"
    assert caught.value.line == 3
    assert "in past, block" in str(caught.value)
    assert "    x[i] = gridDim.x;" in str(caught.value)
    assert f"launched as past at {__file__}" in str(caught.value)


@pytest.mark.parametrize("name", ["device_functions", "recursion", "local_class"])
def test_checks_find_nothing_new_in_slices(sim, name):
    case = next(case for case in CASES if case.name == name)
    kernel = kw.module(case.text)[case.kernel]
    with kw.checks("memory", "init", "race", "sync") as report:
        whole = launches_of(case, kernel)
        np.testing.assert_array_equal(launches_of(case, kernel.slice(1)), whole)
        words = kw.zeros(2, "uint32")
        np.testing.assert_array_equal(launches_of(case, kernel.yielding(words)), whole)
    assert list(report) == []


@pytest.mark.parametrize("wrong", [0, -1, 2**31])
def test_wrong_sizes_of_slices(wrong):
    with pytest.raises(kw.InvalidArgument):
        kw.kernel(MARK).slice(wrong)
    with pytest.raises((kw.InvalidArgument, TypeError, OverflowError)):
        kw.slices(wrong if wrong <= 0 else -wrong)


def test_wrong_words_and_scopes():
    mark = kw.kernel(MARK)
    with pytest.raises(kw.ArgumentError):
        mark.slice(2.5)
    with pytest.raises(kw.ArgumentError):
        mark.yielding(np.zeros(2, np.uint32))
    for words in (kw.zeros(2, "int32"), kw.zeros(1, "uint32"), kw.zeros((2, 2), "uint32")):
        with pytest.raises(kw.InvalidArgument):
            mark.yielding(words)
    with pytest.raises(kw.InvalidArgument):
        mark.yielding(kw.zeros(4, "uint32")[::2])
    cut = kw.slices(2)
    with cut, pytest.raises(kw.InvalidArgument), cut:
        pass


def test_scopes_belong_to_their_thread():
    mark = kw.kernel(MARK)
    out = kw.zeros(8, "int32")
    with kw.slices(1) as cut:
        other = threading.Thread(target=lambda: mark[8, 1](out))
        other.start()
        other.join()
    assert cut.launches == 0


def test_blocks_of_a_slice():
    device = kw.current_device()
    count = device.attributes["multiprocessor_count"]
    assert kw.slice_blocks(count, 1000.0, 10.0) == count
    assert kw.slice_blocks(100 * count, 1000.0, 2000.0) == 100 * count
    assert kw.slice_blocks(100 * count, 1000.0, 100.0) == 7 * count
    assert kw.slice_blocks(100 * count, 1000.0, 1.0, device=device) == count
    with pytest.raises(kw.InvalidArgument):
        kw.slice_blocks(10, 0.0, 1.0)
