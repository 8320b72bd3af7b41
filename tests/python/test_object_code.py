"""PTX and cubins that somebody else compiled, as files and bytes."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

TEXT = r"""
__constant__ float c = 3; __device__ int n[2] = {0, 7};
namespace ns { __global__ void k(float* o, int i, double d) { o[i] = d * c + n[1]; } }
extern "C" __global__ void raw(float* o, int i, double d, signed char small) { o[i] = d + small; }
"""


@pytest.fixture(scope="module")
def ptx():
    return kw.Program(TEXT, kw.ProgramOptions(arch="compute_80")).compile("ptx").code


# A driver may be too old for the compiler's PTX; the simulated device never is.
@pytest.fixture(params=["file", "bytes", "from_ptx", "from_str", "saved", "load"])
def module(request, ptx, tmp_path, sim):
    path = tmp_path / "k.ptx"
    path.write_bytes(ptx)
    if request.param == "file":
        return kw.module(path)
    if request.param == "bytes":
        return kw.module(ptx)
    if request.param == "from_ptx":
        return kw.module(kw.ObjectCode.from_ptx(ptx))
    if request.param == "from_str":
        return kw.module(kw.ObjectCode.from_ptx(ptx.decode()))
    if request.param == "load":
        return kw.module(kw.ObjectCode.load(os.fspath(path)))
    kw.ObjectCode.from_ptx(path).save(tmp_path / "k.kwo")
    return kw.module(tmp_path / "k.kwo")


def test_ptx_runs_however_it_is_given(module):
    assert sorted(module.names) == ["ns::k", "raw"] == sorted(module)
    assert "ns::k" in module and "k" not in module
    out = kw.zeros(3)
    module.symbol("c", dtype="float32")[...] = 10
    module["ns::k"][1, 1](out, 1, 2.0)
    module["raw"][1, 1](out, 2, np.float64(2.5), -1)
    assert out.numpy().tolist() == [0, 27, 1.5]
    copy = pickle.loads(pickle.dumps(module))
    copy["_ZN2ns1kEPfid"][1, 1](out, 0, 1.0)  # a lowered name; c is 3 again in a module of its own
    assert out.numpy().tolist() == [10, 27, 1.5]


def test_types_are_checked_as_far_as_they_are_known(module):
    assert module["ns::k"].signature == "ns::k(float* arg1, int arg2, double arg3)"
    kinds = [p.kind for p in module["raw"].parameters]
    assert kinds[0] == kinds[1] == "untyped"
    out = kw.zeros(3)
    with pytest.raises(kw.ArgumentError, match="float64"):
        module["ns::k"][1, 1](kw.zeros(3, "float64"), 1, 2.0)
    with pytest.raises(kw.ArgumentError, match="arg2"):
        module["raw"][1, 1](out, 1.5, 2.0, 1)
    with pytest.raises(kw.ArgumentRangeError, match="arg4"):
        module["raw"][1, 1](out, 1, 2.0, 300)
    with pytest.raises(kw.NameNotFound, match="raw"):
        module["row"].compile()
    with pytest.raises(kw.NameNotFound, match="name one of"):
        kw.kernel(module._program.code)


def test_written_by_hand():
    text = """// a comment
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 out, .param .u32 by, .param .f32 x)
{ .reg .u64 %a; .reg .f32 %f; .reg .u32 %n;
  ld.param.u64 %a, [out]; ld.param.f32 %f, [x]; ld.param.u32 %n, [by];
  cvta.to.global.u64 %a, %a; st.global.f32 [%a], %f; st.global.u32 [%a + 4], %n; ret; }
"""
    kernel = kw.kernel(kw.ObjectCode.from_ptx(text))
    out = kw.zeros(2)
    kernel[1, 1](out, 4294967295, 1.5)
    assert out.numpy()[0] == 1.5 and out.numpy().view("u4")[1] == 4294967295
    kernel[1, 1](out.ptr, -1, 2)
    assert out.numpy()[0] == 2 and out.numpy().view("i4")[1] == -1


def test_a_cubin_is_listed_and_runs_on_its_gpu_only(tmp_path, sim):
    options = kw.ProgramOptions(arch="sm_80")
    code = kw.Program(TEXT, options).compile("cubin")
    (tmp_path / "k.cubin").write_bytes(code.code)
    module = kw.module(tmp_path / "k.cubin")
    assert sorted(module.names) == ["ns::k", "raw"]
    read = kw.ObjectCode.from_cubin(os.fspath(tmp_path / "k.cubin"))
    assert read.kind == "cubin" and read.arch == "sm_80"
    assert read.lowered_names == code.lowered_names
    with pytest.raises(kw.Error, match=r"make PTX instead"):
        module["raw"].compile(sim)


def test_what_the_command_line_writes(tmp_path, sim):
    (tmp_path / "k.cu").write_text(TEXT)
    command = [sys.executable, "-m", "kernwright", "compile", "k.cu", "--emit", "ptx"]
    command += ["--arch", "compute_80"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    out = kw.zeros(1)
    kw.kernel(tmp_path / "k.ptx", "ns::k")[1, 1](out, 0, 1.0)
    assert out.item() == 10


def test_what_is_no_object_code(tmp_path, ptx):
    (tmp_path / "bad").write_bytes(b"\x7fELF" + bytes(100))
    (tmp_path / "cut").write_bytes(
        kw.Program(TEXT, kw.ProgramOptions(arch="sm_80")).compile("cubin").code[:300]
    )
    cubin = kw.Program(TEXT, kw.ProgramOptions(arch="sm_80")).compile("cubin").code
    kw.ObjectCode.from_cubin(cubin)
    for cut in (1, 100, 1000):
        with pytest.raises(kw.Error, match="cut short"):
            kw.ObjectCode.from_cubin(cubin[:-cut])
    for wrong in (
        lambda: kw.module(b"junk"),
        lambda: kw.module(tmp_path / "bad"),
        lambda: kw.ObjectCode.load(tmp_path / "cut"),
        lambda: kw.ObjectCode.load(tmp_path / "missing"),
        lambda: kw.ObjectCode.from_cubin(ptx),
        lambda: kw.ObjectCode.from_ptx(b""),
    ):
        with pytest.raises(kw.Error):
            wrong()
    with pytest.raises(kw.ArgumentError, match="compiled already"):
        kw.module(ptx, arch="sm_80")


def test_a_pack_wants_sources(tmp_path, ptx):
    with pytest.raises(kw.ArgumentError, match="no source"):
        kw.pack(tmp_path / "p.kwpack", [kw.module(ptx)], archs=["sim"])


def test_object_code_is_no_program(tmp_path, ptx):
    path = tmp_path / "k.ptx"
    path.write_bytes(ptx)
    for source, name in [(path, str(path)), (ptx.decode(), "<ptx>"), (ptx, "<ptx>")]:
        with pytest.raises(kw.ArgumentError, match=r"is object code.*kw.module") as caught:
            kw.Program(source)
        assert name in str(caught.value)
    command = [sys.executable, "-m", "kernwright", "compile", os.fspath(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2 and "is object code" in ended.stderr


def test_names_are_a_list_of_texts():
    program = kw.Program("__global__ void f(float* o) {}")
    with pytest.raises(kw.ArgumentError, match=r"names= is a list of str, got 3 in it"):
        program.compile("ptx", ["f", 3])


def test_the_nearest_option_is_named():
    for wrong, near in {"optins": "options", "max_register": "max_registers"}.items():
        with pytest.raises(kw.ArgumentError, match=rf"no option {wrong} \(did you mean {near}\?\)"):
            kw.kernel("__global__ void f(float* o) {}", **{wrong: None})
