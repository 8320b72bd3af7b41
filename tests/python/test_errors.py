"""The exceptions: their families, and their way between processes."""

import pickle

import pytest
from children import run_child

import kernwright as kw

FAMILIES = {
    "InvalidArgument": ValueError,
    "ArgumentError": TypeError,
    "AxisError": IndexError,
    "DivisionByZero": ZeroDivisionError,
    "ArgumentRangeError": OverflowError,
    "LaunchConfigError": ValueError,
    "NameNotFound": KeyError,
    "DriverNotFound": ImportError,
    "NvrtcNotFound": ImportError,
    "OutOfMemory": MemoryError,
    "PartitionError": ValueError,
    "Timeout": TimeoutError,
    "DeviceLost": kw.DriverError,
    "CompileError": kw.Error,
    "DeviceFault": kw.Error,
    "DeviceNotFound": kw.Error,
    "DriverError": kw.Error,
    "UnsupportedInstruction": kw.Error,
    "NotSliceable": kw.Error,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    kind = getattr(kw, name)
    assert issubclass(kind, kw.Error)
    assert issubclass(kind, FAMILIES[name])
    assert str(kind("what 'happened'")) == "what 'happened'"


def test_errors_pickle_with_their_attributes():
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel("__global__ void broken(int* x) { x[0] = nothing; }").compile()
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.diagnostics == caught.value.diagnostics
    assert error.source == caught.value.source


def test_a_refused_instruction_names_itself_its_line_and_what_to_do(sim):
    ask = kw.kernel("""
#define ASK(a, t) asm("{.reg .pred p; istypep.texref p, %1; selp.s32 %0, 1, 0, p;}" \\
                      : "=r"(a) : "l"(t))
__global__ void ask(unsigned long long t, int* y) {
    int a;
    ASK(a, t); *y = a;
}""")
    with pytest.raises(kw.UnsupportedInstruction) as caught:
        ask[1, 1](0, kw.zeros(1, "i4"))
    message = str(caught.value)
    assert "the instruction istypep.texref is not simulated: no texture references" in message
    assert "textures and surfaces are handles of 64 bits" in message
    first, second = message.splitlines()[:2]
    begin = test_a_refused_instruction_names_itself_its_line_and_what_to_do.__code__.co_firstlineno
    place = f"{__file__}:{begin + 6} (line 6 of the kernel's text)"
    assert first.startswith(f"unsupported: {place}: the instruction")
    assert second.startswith(f"  at {place} (PTX line ")


NEWER = r"""
import kernwright as kw
kernel = kw.kernel("__global__ void newer(int* x) { x[0] = 1; }", arch="compute_90")
try:
    kernel[1, 1](kw.zeros(1, "int32"))
except kw.DriverError as error:
    assert "sm_90" in str(error), error
    print(kw.cache.info()["process"]["compiles"])
"""


def test_code_that_is_too_new_for_the_device_is_compiled_once(tmp_path):
    for compiles in ("1", "0"):
        ended = run_child(
            NEWER,
            KERNWRIGHT_DEVICE="sim",
            KERNWRIGHT_SIM_CAPABILITY="8.0",
            KERNWRIGHT_CACHE="disk",
            KERNWRIGHT_CACHE_DIR=str(tmp_path),
        )
        assert (ended.code, ended.out, ended.err) == (0, f"{compiles}\n", "")


def test_a_standard_that_nvrtc_does_not_know_names_its_version():
    count = kw.zeros(1, "int64")
    try:
        kw.kernel("__global__ void k(long long* x) { x[0] = __cplusplus; }", std="c++23")[1, 1](
            count
        )
    except kw.InvalidArgument as error:
        assert "--std=c++23" in str(error) and "NVRTC" in str(error)
    else:
        assert count.item() > 202002
    with pytest.raises(kw.InvalidArgument, match=r"c\+\+71.*c\+\+23"):
        kw.kernel("__global__ void k() {}", std="c++71").compile()
    with pytest.raises(kw.InvalidArgument, match="field `std`"):
        kw.kernel("__global__ void k() {}", extra=["--std=c++23"]).compile()


BUILT = "__global__ void {name}(const float* in, float* out) {{\n{pad}    out[1] = {what};\n}}"


def fault_of(text, *arguments):
    with pytest.raises(kw.DeviceFault) as caught:
        kw.kernel(text)[1, 1](*arguments)
    return caught.value


def test_a_fault_shows_the_line_of_its_own_text(sim):
    """Of texts put together, which share the name <string>."""
    x = kw.zeros(4)
    for what in ("in[4]", "in[5]  ", "in[-1]"):
        for pad in ("", "\n\n"):
            fault = fault_of(BUILT.format(name="same", what=what, pad=pad), x, kw.zeros(4))
            assert f"\n    out[1] = {what};\n" in str(fault) or f"out[1] = {what.strip()}" in str(
                fault
            )
            assert fault.line == 2 + len(pad) and fault.report == str(fault)
    literal = fault_of("__global__ void k(int* x) {\n\tx[9] = 1;\n}", kw.zeros(4, "int32"))
    assert "\n    x[9] = 1;\n" in str(literal)


def test_a_fault_shows_lines_of_headers_and_files(sim, tmp_path):
    header = {"mine.h": "// a header\n__device__ void put(int* x) { x[9] = 1; }\n"}
    text = '#include "mine.h"\n__global__ void k(int* x) { put(x); }'
    with pytest.raises(kw.DeviceFault, match=r"\{ x\[9\] = 1; \}"):
        kw.kernel(text, headers=header)[1, 1](kw.zeros(4, "int32"))
    path = tmp_path / "kernel.cu"
    path.write_text("\n__global__ void k(int* x) { x[8] = 1; }  // of a file\n")
    with pytest.raises(kw.DeviceFault, match="of a file"):
        kw.kernel(path)[1, 1](kw.zeros(4, "int32"))


def test_the_shown_line_steers_no_terminal_and_is_short(sim):
    mark = "\x1b[31m\u009b1m \u00e9"
    line = f"x[9] = 1; /* {mark} {'long ' * 60} */"
    fault = fault_of(f"__global__ void k(int* x) {{\n  {line}\n}}", kw.zeros(4, "int32"))
    shown = str(fault).splitlines()[1]
    assert shown.startswith("    x[9] = 1; /* ?[31m?1m \u00e9 long") and shown.endswith("...")
    assert len(shown) < 130


def test_timeouts_and_assertions_show_their_line_too(sim):
    fault = fault_of(
        "__global__ void k(int* x) {\n  if (x) __trap();  // here\n}", kw.zeros(4, "int32")
    )
    assert "if (x) __trap();  // here" in str(fault)
