"""Kernels, modules and programs: from text to code and launch, and their errors."""

import os
import pathlib
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import SAXPY

import kernwright as kw

TWO = """
__global__ void first(int* x) { x[0] = 1; }
__global__ void second(int* x) { x[0] = 2; }
"""
TEMPLATE = """
template <typename T, int N>
__global__ void scale(T* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] *= T(N);
}
"""


def test_signature_and_parameters(saxpy):
    assert saxpy.signature == "saxpy(float a, const float* x, float* y, int n)"
    a, x, y, n = saxpy.parameters
    assert (a.name, a.type, a.kind, a.dtype, a.size, a.offset) == (
        "a", "float", "scalar", np.float32, 4, 0,
    )  # fmt: skip
    assert (x.type, x.kind, x.dtype, x.const, x.size, x.offset) == (
        "const float*", "pointer", np.float32, True, 8, 8,
    )  # fmt: skip
    assert not y.const and y.offset == 16
    assert (n.type, n.offset) == ("int", 24)
    assert saxpy.name == "saxpy" and "saxpy" in repr(saxpy)


def test_attributes_and_occupancy(saxpy):
    attributes = saxpy.attributes
    assert 4 <= attributes.registers <= 255
    assert attributes.max_threads_per_block == 1024
    assert attributes.shared_bytes == attributes.local_bytes == 0
    assert attributes.constant_bytes >= 0
    assert saxpy.occupancy(256) >= 1
    assert saxpy.occupancy(256, 40_000) <= saxpy.occupancy(256)
    block = saxpy.suggest_block()
    assert 32 <= block <= 1024 and block % 32 == 0
    assert 32 <= saxpy.suggest_block(shared_bytes=1000) <= 1024


def test_static_shared_memory_is_counted():
    tile = kw.kernel(
        """__global__ void tile(float* x) {
            __shared__ float t[128];
            t[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = t[127 - threadIdx.x];
        }"""
    )
    assert tile.attributes.shared_bytes == 512


def test_code_can_be_looked_at(saxpy):
    assert ".version" in saxpy.ptx and "saxpy" in saxpy.ptx
    assert saxpy.cubin[:4] == b"\x7fELF"
    assert isinstance(saxpy.log, str)


def test_compile_returns_the_kernel(saxpy, device):
    assert saxpy.compile() is saxpy
    assert saxpy.compile(device) is saxpy


def test_the_only_kernel_needs_no_name():
    assert kw.kernel(SAXPY).name == "saxpy"
    assert kw.kernel('extern "C" ' + SAXPY.strip()).signature.startswith("saxpy(float a")


def test_two_kernels_and_no_name_lists_them():
    with pytest.raises(kw.NameNotFound) as caught:
        kw.kernel(TWO).compile()
    assert "first" in str(caught.value) and "second" in str(caught.value)
    assert isinstance(caught.value, KeyError)


def test_an_unknown_name_lists_what_is_there():
    with pytest.raises(kw.NameNotFound, match="second"):
        kw.kernel(TWO, "sekond").compile()
    with pytest.raises(kw.NameNotFound):
        kw.kernel("int f() { return 1; }").compile()


@pytest.mark.parametrize("source", ["", "   \n\t", "a\0b", SAXPY + "\0"])
def test_empty_sources_and_nul_are_refused(source):
    with pytest.raises(kw.InvalidArgument):
        kw.kernel(source).compile()


@pytest.mark.parametrize("source", [None, 1, b"__global__ void f() {}", ["x"]])
def test_what_is_no_source(source):
    with pytest.raises(TypeError):
        kw.kernel(source)
    with pytest.raises(TypeError):
        kw.module(source)
    with pytest.raises(TypeError):
        kw.kernel(SAXPY, name=3)


def test_a_syntax_error_points_into_this_file():
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(
            r"""
            __global__ void broken(int* x) {
                x[0] = 1
            }
            """
        ).compile()
    error = caught.value
    first = error.diagnostics[0]
    assert first.severity == "error"
    assert os.path.basename(first.file) == os.path.basename(__file__)
    # NVRTC complains at the brace after the missing semicolon, or at the end of the line before.
    assert first.line - BROKEN_LINE in (1, 2)
    assert first.column > 0
    assert f"{os.path.basename(__file__)}:{first.line}" in str(error)
    assert "broken" in error.source and error.log and error.options


BROKEN_LINE = next(
    number
    for number, line in enumerate(pathlib.Path(__file__).read_text().splitlines(), 1)
    if line.strip() == "__global__ void broken(int* x) {"
)


def test_a_dedented_literal_is_found_too():
    text = textwrap.dedent(
        """
        __global__ void dedented(int* x) {
            x[0] = undefined_name_here;
        }
        """
    )
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(text).compile()
    found = caught.value.diagnostics[0]
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert "undefined_name_here" in lines[found.line - 1]


def test_a_text_that_is_in_no_file_is_called_string():
    text = "\n".join(["__global__ void made(int* x) {", " x[0] = " + "nothing" * 2 + ";", "}"])
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(text).compile()
    assert caught.value.diagnostics[0].file == "<string>"
    assert caught.value.diagnostics[0].line == 2


def test_sources_from_files(tmp_path):
    (tmp_path / "ten.h").write_text("#define TEN 10\n")
    path = tmp_path / "store.cu"
    path.write_text('#include "ten.h"\n__global__ void store(int* x) { x[0] = TEN; }\n')
    out = kw.zeros(1, "int32")
    kw.kernel(path)[1, 1](out)
    assert out.item() == 10
    path.write_text("__global__ void store(int* x) {\n  x[0] = oops;\n}\n")
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(path).compile()
    assert caught.value.diagnostics[0].file == str(path)
    assert caught.value.diagnostics[0].line == 2
    with pytest.raises(kw.InvalidArgument, match="missing"):
        kw.kernel(tmp_path / "missing.cu")
    # A str is text, never a path.
    with pytest.raises(kw.InvalidArgument, match=r"pathlib\.Path"):
        kw.kernel(str(path)).compile()


def test_templates():
    m = kw.module(TEMPLATE)
    assert m.names == ["scale"] and "scale" in m and list(m) == ["scale"]
    x, y = kw.ones(5), kw.ones(5, "int32")
    m["scale<float, 4>"][1, 8](x, 5)
    m["scale<int, 3>"][1, 8](y, 5)
    m["scale<float, 2>"][1, 8](x, 5)
    assert (x.numpy() == 8).all() and (y.numpy() == 3).all()
    assert m["scale<float, 4>"] is m.kernel("scale<float, 4>")
    assert m["scale<float, 4>"].signature == "scale<float, 4>(float* x, int n)"
    with pytest.raises((kw.NameNotFound, kw.CompileError)):
        m["scale<float>"].compile()


def test_namespaces():
    m = kw.module("namespace ours { __global__ void set(int* x) { x[0] = 5; } }")
    out = kw.zeros(1, "int32")
    m["ours::set"][1, 1](out)
    assert out.item() == 5 and m.names == ["ours::set"]


SYMBOLS = """
__constant__ float coeffs[4];
__device__ int counter = 41;
__device__ double table[2][3];
struct Pair { int a, b; };
__device__ Pair pair;
__global__ void use(float* out) {
    out[threadIdx.x] = coeffs[threadIdx.x] * (float)counter + (float)table[1][2] + pair.b;
    if (threadIdx.x == 0) counter += 1;
}
"""


def test_symbols_are_arrays():
    m = kw.module(SYMBOLS)
    coeffs, counter = m.symbol("coeffs"), m.symbol("counter")
    assert coeffs.shape == (4,) and coeffs.dtype == np.float32
    assert counter.shape == () and counter.item() == 41
    coeffs[...] = [1, 2, 3, 4]
    counter[...] = 10
    m.symbol("table")[1, 2] = 0.5
    pair = m.symbol("pair", "int32")
    assert pair.shape == (2,) and m.symbol("pair").dtype == [("a", "i4"), ("b", "i4")]
    pair[1] = 1
    out = kw.zeros(4)
    m["use"][1, 4](out)
    assert out.numpy().tolist() == [11.5, 21.5, 31.5, 41.5]
    assert counter.item() == 11
    with pytest.raises(kw.NameNotFound, match="coeffs"):
        m.symbol("koeffs")
    with pytest.raises(kw.InvalidArgument):
        m.symbol("coeffs", "float64", 9)


def test_a_symbol_keeps_its_module():
    counter = kw.module(SYMBOLS + "// kept").symbol("counter")
    assert counter.item() == 41


def test_option_fields():
    text = """
    #include "scale.h"
    __global__ void f(float* x) { x[0] = SCALE * FACTOR; }
    """
    headers = {"scale.h": "#define SCALE 3\n"}
    out = kw.zeros(1)
    kw.kernel(text, headers=headers, defines={"FACTOR": 7})[1, 1](out)
    assert out.item() == 21
    kw.kernel(text, headers=headers, defines={"FACTOR": "2.5f"}, fast_math=True)[1, 1](out)
    assert out.item() == 7.5
    flags = "__global__ void g(int* x) { x[0] = FLAG + __cplusplus / 100; }"
    counts = kw.zeros(1, "int32")
    kw.kernel(flags, defines={"FLAG": True}, std="c++20")[1, 1](counts)
    assert counts.item() == 1 + 2020 - 0 if counts.item() == 2021 else counts.item() == 2003
    limited = kw.kernel(SAXPY, max_registers=16, lineinfo=True, opt_level=3, extra=["-DX=1"])
    assert limited.attributes.registers <= 16


def test_include_dirs(tmp_path):
    (tmp_path / "there.h").write_text("#define THERE 9\n")
    out = kw.zeros(1, "int32")
    kernel = kw.kernel(
        '#include "there.h"\n__global__ void f(int* x) { x[0] = THERE; }', include_dirs=[tmp_path]
    )
    kernel[1, 1](out)
    assert out.item() == 9


def test_unknown_options_name_the_nearest():
    with pytest.raises(TypeError, match="max_registers") as caught:
        kw.kernel(SAXPY, max_register=3)
    assert isinstance(caught.value, kw.ArgumentError)
    with pytest.raises(TypeError, match="did you mean fast_math"):
        kw.ProgramOptions(fastmath=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"arch": 90},
        {"defines": ["A"]},
        {"defines": {1: "x"}},
        {"defines": {"A": object()}},
        {"headers": "x"},
        {"include_dirs": "here"},
        {"fast_math": 1},
        {"max_registers": "many"},
        {"max_registers": True},
        {"minimal": "yes"},
        {"timeout": "soon"},
        {"extra": "-lineinfo"},
        {"extra": [3]},
        {"options": {"arch": "sm_80"}},
    ],
)
def test_options_of_the_wrong_kind(fields):
    with pytest.raises(TypeError, match=next(iter(fields))):
        kw.kernel(SAXPY, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"std": "c++05"},
        {"max_registers": -1},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"extra": ["no-dash"]},
        {"extra": ["-a\nb"]},
        {"defines": {"A\n": "1"}},
        {"headers": {"../up.h": ""}},
        {"headers": {"/abs.h": ""}},
        {"opt_level": 9},
    ],
)
def test_options_that_no_compiler_takes(fields):
    with pytest.raises(kw.InvalidArgument):
        kw.kernel(SAXPY, **fields).compile()


def test_options_are_values():
    options = kw.ProgramOptions(arch="sm_90", defines={"N": 3})
    assert options == kw.ProgramOptions(defines={"N": "3"}, arch="sm_90")
    assert options != kw.ProgramOptions()
    changed = options.replace(arch=None)
    assert changed.arch is None and changed.defines == {"N": "3"} and options.arch == "sm_90"
    assert repr(kw.ProgramOptions()) == "ProgramOptions()"
    assert "sm_90" in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(AttributeError, match="replace"):
        options.arch = "sm_80"
    with pytest.raises(AttributeError):
        options.no_such_field


def test_the_explicit_form():
    program = kw.Program(TWO + TEMPLATE, kw.ProgramOptions(defines={"UNUSED": 1}))
    assert program.names == ["first", "second", "scale"]
    ptx = program.compile("ptx", names=["second", "scale<float, 4>"])
    assert ptx.kind == "ptx" and b".version" in ptx.code and ptx.arch.startswith("compute_")
    assert list(ptx.kernels) == ["second", "scale<float, 4>"]
    assert ptx.kernel("second").name == "second"
    cubin = program.compile()
    assert cubin.kind == "cubin" and cubin.code[:4] == b"\x7fELF"
    assert set(cubin.kernels) == {"first", "second"}
    assert isinstance(cubin.log, str) and cubin.diagnostics == [] and cubin.compile_ms > 0
    with pytest.raises(kw.NameNotFound, match="second"):
        cubin.kernel("third")
    with pytest.raises(ValueError, match="cubin"):
        program.compile("exe")
    with pytest.raises(TypeError):
        program.compile("ptx", names="first")


def test_programs_compile_for_other_architectures():
    for arch in ("sm_80", "sm_90a"):
        code = kw.Program(SAXPY, kw.ProgramOptions(arch=arch)).compile("cubin")
        assert code.arch == arch
    with pytest.raises(kw.Error, match="sm_12345"):
        kw.Program(SAXPY, kw.ProgramOptions(arch="sm_12345")).compile("cubin")


def runnable(program, device):
    return program.compile("ptx" if device.is_simulated else "cubin")


def test_object_code_runs_saves_and_loads(device, tmp_path):
    code = runnable(kw.Program(TWO), device)
    out = kw.zeros(1, "int32")
    code.kernel("second")[1, 1](out)
    assert out.item() == 2
    path = tmp_path / "two.kwc"
    code.save(path)
    loaded = kw.ObjectCode.load(path)
    assert loaded.code == code.code and loaded.arch == code.arch
    loaded.kernels["first"][1, 1](out)
    assert out.item() == 1
    data = path.read_bytes()
    for broken in (data[:-5], b"", b"garbage" * 10, data[:40] + bytes([data[40] ^ 1]) + data[41:]):
        path.write_bytes(broken)
        with pytest.raises(kw.Error, match=r"two\.kwc"):
            kw.ObjectCode.load(path)
    with pytest.raises(kw.Error, match="nothing-here"):
        kw.ObjectCode.load(tmp_path / "nothing-here")


def test_a_cubin_does_not_run_on_the_simulated_device(sim):
    code = kw.Program(SAXPY, kw.ProgramOptions(arch="sm_80")).compile("cubin")
    with pytest.raises(kw.Error, match="ptx"):
        code.kernel("saxpy").compile()


def test_kernels_modules_and_code_pickle(device):
    kernel = kw.kernel(TWO, "second", defines={"A": 1})
    module = kw.module(TWO)
    program = kw.Program(TWO, kw.ProgramOptions(std="c++20"))
    code = runnable(program, device)
    out = kw.zeros(1, "int32")
    for original, launch in (
        (kernel, lambda k: k[1, 1](out)),
        (module, lambda m: m["second"][1, 1](out)),
        (module["second"], lambda k: k[1, 1](out)),
        (code, lambda c: c.kernel("second")[1, 1](out)),
        (code.kernel("second"), lambda k: k[1, 1](out)),
    ):
        out[...] = 0
        launch(pickle.loads(pickle.dumps(original)))
        assert out.item() == 2
    assert pickle.loads(pickle.dumps(program)).options == program.options
    again = pickle.loads(pickle.dumps(kernel))
    assert again.name == "second" and again.signature == kernel.signature


def test_pickled_kernels_work_in_another_process(tmp_path):
    path = tmp_path / "kernel.pickle"
    path.write_bytes(pickle.dumps(kw.kernel(SAXPY)))
    code = f"""
import pickle, kernwright as kw
k = pickle.load(open({str(path)!r}, "rb"))
x, y = kw.ones(4), kw.zeros(4)
k[1, 4](2.0, x, y, 4)
print(y.numpy().sum())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "8.0", result.stderr


def test_no_options_are_the_default_ones():
    source = "__global__ void default_options(int* x) { *x = 1; }"
    kernel = kw.kernel(source)
    kernel.compile()
    before = kw.cache.info()["process"]["misses"]
    same = kw.Program(source, kw.ProgramOptions()).kernel()
    same.compile()
    assert kw.cache.info()["process"]["misses"] == before
    assert pickle.loads(pickle.dumps(kw.module(source))).names == ["default_options"]
    assert pickle.loads(pickle.dumps(kernel)).ptx == kernel.ptx == same.ptx
    program = pickle.loads(pickle.dumps(kw.Program(source)))
    assert program.options == kw.ProgramOptions()
