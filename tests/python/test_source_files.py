"""Texts, files and headers of every kind of name and beginning: places in them are right."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernwright as kw

APP = '''import kernwright as kw
K = kw.kernel(r"""
__global__ void f(float* o) {
  int unused;
  o[4] = 1;
}
""")
try:
    K[1, 1](kw.zeros(4))
except kw.DeviceFault as e:
    place = next(line for line in str(e).splitlines() if line.startswith("  at"))
    print(ascii(e.file), e.line, place.encode("unicode-escape").decode())
print(K.log.splitlines()[0].encode("unicode-escape").decode())
'''
NAMES = [
    "plain",
    "jos\u00e9",
    "\u4e2d\u6587 x",
    "back\\slash",
    'qu"ote',
    "a(1): b",
    "tab\tbed",
    "it's",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_script_of_any_name_is_named_in_faults_and_logs(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "app.py"
    path.write_text(APP)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim"},
    )
    assert done.returncode == 0, done.stderr
    fault, log = done.stdout.splitlines()
    shown = str(path).encode("unicode-escape").decode()
    assert fault.startswith(f"{str(path)!a} 4   at {shown}:5 (line 4 of the kernel's text)")
    assert log.startswith(f"{shown}(4): warning")


@pytest.mark.parametrize(("name", "shown"), [(b"\xff", r"\udcff"), (b"a\nb", r"a\\nb")])
def test_a_script_whose_name_no_message_can_hold_runs(tmp_path, name, shown):
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(folder)
    path = os.path.join(folder, b"app.py")
    with open(path, "w") as file:
        file.write(APP)
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim"},
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert ":5 (line 4 of the kernel's text)" in done.stdout
    with open(os.path.join(folder, b"k.cu"), "w") as file:
        file.write("__global__ void f() {}")
    with pytest.raises(kw.InvalidArgument, match="pass its text"):
        kw.kernel(Path(os.fsdecode(folder), "k.cu"))


@pytest.mark.parametrize("name", NAMES)
def test_a_header_in_a_folder_of_any_name_is_named_in_faults(tmp_path, sim, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "set.h").write_text(
        '#include "far.h"\n\n__device__ void set(float* p, int i) { far(p, i); }\n'
    )
    (folder / "far.h").write_text("__device__ void far(float* p, int i) {\n  p[i] = 1;\n}\n")
    text = '#include "set.h"\n__global__ void f(float* o) { set(o, 4); }'
    with sim:
        k = kw.kernel(text, include_dirs=[str(folder)])
        with pytest.raises(kw.DeviceFault) as caught:
            k[1, 1](kw.zeros(4))
            kw.current_device().synchronize()
    assert (caught.value.file, caught.value.line) == (str(folder / "far.h"), 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_source_file_of_any_name_is_named_in_errors(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "k.cu"
    path.write_text("__global__ void f(float* o) {\n  o[0] = yy;\n}\n")
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(path).compile()
    (found,) = caught.value.diagnostics
    assert (found.file, found.line, found.column) == (str(path), 2, 10)
    assert f"{path}:2:10: error" in str(caught.value)
    assert kw.lint(path) == caught.value.diagnostics


@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path, device, text):
    kernel = text + "__global__ void f(float* o) { o[0] = 1; }\n"
    path = tmp_path / "k.cu"
    path.write_text(kernel, encoding="utf-8")
    (tmp_path / "h.h").write_text(text + "#define V 1\n", encoding="utf-8")
    user = '#include "h.h"\n__global__ void f(float* o) { o[0] = V; }'
    for source, options in (
        (kernel, {}),
        (path, {}),
        (user, {"headers": {"h.h": text + "#define V 1\n"}}),
        (user, {"include_dirs": [str(tmp_path)]}),
    ):
        o = kw.zeros(1)
        kw.kernel(source, **options)[1, 1](o)
        assert o.item() == 1
        assert kw.lint(source, **options) == []
    assert kw.kernel(path).name == "f"


def test_a_header_that_changes_behind_its_mark_is_read_again(tmp_path, device):
    text = '#include "h.h"\n__global__ void f(float* o) { o[0] = V; }'
    for value in (1, 2):
        (tmp_path / "h.h").write_text(f"\ufeff#define V {value}\n", encoding="utf-8")
        o = kw.zeros(1)
        kw.kernel(text, include_dirs=[str(tmp_path)])[1, 1](o)
        assert o.item() == value


HEADERS = {
    "d/a.h": '#include "b.h"\n#include "../c.h"\n',
    "d/b.h": "#define B 1\n",
    "b.h": "#define B 100\n",
    "c.h": '#include "d/./e/../f.h"\n',
    "d/f.h": "#define F 20\n",
}


def test_headers_in_memory_include_one_another_as_files_do(tmp_path, device):
    text = '#include "d/a.h"\n__global__ void f(float* o) { o[0] = B + F; }'
    for name, header in HEADERS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(header)
    (tmp_path / "d/e").mkdir()
    path = tmp_path / "k.cu"
    path.write_text(text)
    for source, options in ((text, {"headers": HEADERS}), (path, {})):
        o = kw.zeros(1)
        kw.kernel(source, **options)[1, 1](o)
        assert o.item() == 21


def test_a_header_in_memory_keeps_its_name(tmp_path, sim, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = "__device__ void set(float* p, int i) {\n  p[i] = 1;\n}\n"
    text = '#include "in/hh.h"\n__global__ void v(float* o) { set(o, 10); }'
    with sim:
        k = kw.kernel(text, headers={"in/hh.h": header})
        with kw.line_profile(k) as profile, kw.trace(k) as trace:
            k[1, 1](kw.zeros(64))
        with pytest.raises(kw.DeviceFault) as caught:
            k[1, 1](kw.zeros(4))
            kw.current_device().synchronize()
    assert (caught.value.file, caught.value.line) == ("in/hh.h", 2)
    lines = {(line.file, line.line): line.source for line in profile.lines}
    assert lines["in/hh.h", 2].strip() == "p[i] = 1;"
    assert any(s.file == "in/hh.h" and s.source.strip() == "p[i] = 1;" for s in trace.steps)
    assert "p[i] = 1;" in trace.to_text()
    assert str(tmp_path) not in k.ptx


def test_every_error_is_shown_with_its_line():
    text = "__global__ void f(float* o) {\n  o[0] = a;\n  o[1] = b;\n  o[2] = c;\n}"
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(text).compile()
    for line, name in enumerate("abc", 2):
        assert f':{line}:10: error: identifier "{name}" is undefined' in str(caught.value)
    assert "(3 errors;" in str(caught.value)


def test_of_many_errors_ten_are_shown():
    rows = "".join(f"  o[{i}] = a{i};\n" for i in range(14))
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel("__global__ void f(float* o) {\n" + rows + "}").compile()
    assert '"a9"' in str(caught.value)
    assert '"a10"' not in str(caught.value)
    assert "(14 errors, of which 10 are shown;" in str(caught.value)
    assert len(caught.value.diagnostics) == 14


def test_columns_count_characters():
    text = "__global__ void f(float* o){ /* gr\u00f6\u00dfer \u2202 */\to[0] = yy; }"
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(text).compile()
    (found,) = caught.value.diagnostics
    assert found.column == text.index("yy") + 1
    source, caret = found.caret.split("\n")
    assert source[caret.index("^") :].startswith("yy")
    assert kw.lint(text)[0].column == found.column


MISSING_END = kw.kernel(r"""
__global__ void f(float* o) {
  for (;;) {
    o[0] = 1;
}
""")
WARNING = kw.kernel(r"""
struct A { int x; };
__global__ void g(float* o) { int unused; o[0] = 1; }
""")
TWICE = kw.kernel(r"""
struct A { int x; };
struct A { int y; };
__global__ void g(float* o) { o[0] = 1; }
""")
ASSERTION = kw.kernel(r"""
__global__ void h(float* o) { assert(o[0] == 1); }
""")
ASSEMBLY = kw.kernel(r"""
__global__ void a(int* o) {
  int x;
  asm volatile(
      "mov.u32 %0, 1;\n"
      "movv.u32 %0, 2;\n"
      : "=r"(x));
  o[0] = x;
}
""")
OWN = Path(__file__).read_text().split("\n")


def line_of(text):
    """The line of this file on which `text` first stands."""
    return next(i for i, row in enumerate(OWN, 1) if text in row)


def test_what_is_missing_at_the_end_is_an_error_in_this_file():
    with pytest.raises(kw.CompileError) as caught:
        MISSING_END.compile()
    found = caught.value.diagnostics
    assert [d.severity for d in found] == ["error", "note"]
    assert all(d.file == __file__ for d in found)
    first = line_of("MISSING_END =") + 1
    assert [d.line for d in found] == [first + 3, first]


def test_logs_count_in_this_file():
    compiled = WARNING.compile()
    place = f"{__file__}({line_of('int unused; o[0]')}): warning"
    assert compiled.log.startswith(place)
    with pytest.raises(kw.CompileError) as caught:
        TWICE.compile()
    first = line_of("TWICE =") + 1
    assert f"({first + 1}): error" in caught.value.log
    assert f"at line {first})" in caught.value.log
    assert f"at line {first})" in str(caught.value)


def test_an_assertion_names_the_line_of_this_file(sim):
    with sim, pytest.raises(kw.DeviceFault) as caught:
        ASSERTION[1, 1](kw.zeros(1))
        kw.current_device().synchronize()
    line = line_of("assert(o[0] == 1)")
    assert str(caught.value).startswith(f"assert: {__file__}:{line}: ")
    assert caught.value.line == 2


def test_an_error_of_inline_assembly_has_the_line_of_the_instruction():
    with pytest.raises(kw.CompileError) as caught:
        ASSEMBLY.compile()
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == (__file__, line_of('"movv.u32'))
    assert OWN[found.line - 1][found.column - 1 :].startswith("movv")
    assert "ptxas" in found.message


def test_assembly_in_a_header_has_the_line_of_the_header():
    header = (
        '__device__ int bad() {\n  int x;\n  asm("addd.s32 %0, 1, 2;" : "=r"(x));\n  return x;\n}\n'
    )
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(
            '#include "h.h"\n__global__ void f(int* o) { o[0] = bad(); }', headers={"h.h": header}
        ).compile()
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == ("h.h", 3)


@pytest.mark.parametrize(
    ("text", "options", "error", "said"),
    [
        ("__global__ void f(float* o);", {}, kw.NameNotFound, "not defined"),
        (
            "template <class T> __global__ void f(T* o);",
            {"name": "f<int>"},
            kw.NameNotFound,
            "not defined",
        ),
        (
            "__global__ void f(float* o, auto x) { o[0] = x; }",
            {"std": "c++20"},
            kw.NameNotFound,
            "f<float>",
        ),
        (
            "template <class T> concept Small = sizeof(T) == 4;\n"
            "template <Small T> __global__ void f(T* o) {}",
            {"std": "c++20", "name": "f<double>"},
            kw.NameNotFound,
            "constraints",
        ),
        (
            "__global__ void g(float* o) {}\n__global__ void f(float* o) { g<<<1, 1>>>(o); }",
            {},
            kw.CompileError,
            "cannot launch kernels",
        ),
        ("__global__ void f() { cudaDeviceSynchronize(); }", {}, kw.CompileError, "cannot call"),
        (
            "struct B { char c[33000]; };\n__global__ void f(B b, char* o) { o[0] = b.c[1]; }",
            {},
            kw.CompileError,
            "pass a pointer",
        ),
        (
            "#include <cublas_v2.h>\n__global__ void f() {}",
            {},
            kw.CompileError,
            "kernels cannot call it",
        ),
        ("__global__ void g() {}", {}, kw.NameNotFound, "there is: g"),
    ],
)
def test_a_usual_mistake_is_explained(text, options, error, said):
    name = options.get("name", "f")
    fields = {key: value for key, value in options.items() if key != "name"}
    with pytest.raises(error) as caught:
        kw.kernel(text, name, **fields).compile()
    assert said in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_kernel_that_is_only_declared_does_not_harm_the_others(device):
    module = kw.module("__global__ void f(float* o);\n__global__ void g(float* o) { o[0] = 2; }")
    o = kw.zeros(1)
    module["g"][1, 1](o)
    assert o.item() == 2


def test_a_grid_wide_barrier_needs_a_cooperative_launch(sim):
    text = (
        "#include <cooperative_groups.h>\n"
        "__global__ void f(float* o) { cooperative_groups::this_grid().sync(); o[0] = 1; }"
    )
    with sim:
        k = kw.kernel(text)
        with pytest.raises(kw.DeviceFault, match="cooperative=True"):
            k[2, 32](kw.zeros(1))
            kw.current_device().synchronize()
        plain = kw.kernel("__global__ void f(float* o) { __trap(); }")
        with pytest.raises(kw.DeviceFault) as caught:
            plain[1, 1](kw.zeros(1))
            kw.current_device().synchronize()
    assert "cooperative" not in str(caught.value)


def test_text_that_needs_a_newer_device_says_which():
    code = '__global__ void f(int* o) { asm volatile("wgmma.fence.sync.aligned;"); }'
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(code, arch="compute_80").compile()
        kw.Program(code, kw.ProgramOptions(arch="sm_80")).compile("cubin")
    assert "KERNWRIGHT_SIM_CAPABILITY=9.0" in str(caught.value)
    assert "sm_90a" in str(caught.value)


@pytest.mark.parametrize("path", ["kernels/scale.cu", "a.cuh", "./k.ptx", "C:\\k.cu", " k.cubin "])
def test_a_path_as_a_str_is_refused_with_advice(path):
    for make in (kw.kernel, kw.module, kw.Program, kw.lint):
        with pytest.raises(kw.InvalidArgument, match=r"pathlib\.Path"):
            make(path)
    with pytest.raises(kw.InvalidArgument, match=r"pathlib\.Path"):
        kw.kernel(path, "scale")


def test_a_str_that_names_a_file_is_refused_whatever_its_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").write_text("__global__ void f() {}")
    with pytest.raises(kw.InvalidArgument, match=r"pathlib\.Path\('kernels'\)"):
        kw.module("kernels")
    assert kw.module("#define X\n").names == []


class Half(float):
    pass


@pytest.mark.parametrize(
    "value",
    [5, -5, 0, True, False, 0.5, 0.1, -0.0, 1e300, 5e-324, 2**63, 2**64 - 1, -(2**63), Half(0.5)]
    + [float("inf"), float("-inf"), float("nan")]
    + [np.int8(-3), np.int64(5), np.uint64(2**64 - 1), np.bool_(True), np.bool_(False)]
    + [np.float16(0.1), np.float32(0.1), np.float64(0.1), np.float32("inf"), np.float16("nan")]
    + [np.array(7)],
    ids=repr,
)
def test_a_define_is_the_number_that_was_given(device, value):
    o = kw.zeros(1, "float64")
    kw.kernel("__global__ void f(double* o) { o[0] = (double)(N); }", defines={"N": value})[1, 1](o)
    np.testing.assert_array_equal(o.item(), float(value))


def test_a_whole_define_serves_the_preprocessor_and_constants(device):
    text = (
        "#if N > 3\nconstexpr double x = X;\n#endif\n"
        "__global__ void f(double* o) { double a[N]; a[N - 1] = x; o[0] = a[N - 1]; }"
    )
    o = kw.zeros(1, "float64")
    kw.kernel(text, defines={"N": np.int32(4), "X": -np.inf})[1, 1](o)
    assert o.item() == -np.inf


def test_narrow_numbers_of_ml_dtypes_are_defines(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for value in (
        ml_dtypes.bfloat16(1.5),
        ml_dtypes.float8_e4m3fn(0.875),
        ml_dtypes.bfloat16("inf"),
        ml_dtypes.int4(-3),
    ):
        o = kw.zeros(1, "float64")
        text = "__global__ void f(double* o) { o[0] = (double)(N); }"
        kw.kernel(text, defines={"N": value})[1, 1](o)
        assert o.item() == float(value)


@pytest.mark.parametrize("value", [1j, np.complex64(1), object(), b"x", [1], np.zeros(2), {}])
def test_a_define_of_another_kind_is_refused(value):
    with pytest.raises(kw.ArgumentError, match=r"defines\['N'\]"):
        kw.ProgramOptions(defines={"N": value})


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_a_define_beyond_64_bits_is_refused(value):
    with pytest.raises(kw.InvalidArgument, match=str(value)):
        kw.ProgramOptions(defines={"N": value})
