"""Kernels not visible in the text: their names come from the compiler."""

import pytest

import kernwright as kw

MADE = '#define KERNEL(n) extern "C" __global__ void n\nKERNEL(mk)(float* o) { o[0] = 2; }\n'


def run(kernel):
    out = kw.zeros(1)
    kernel[1, 1](out)
    return out.item()


def test_a_kernel_made_by_a_macro():
    module = kw.module(MADE)
    assert module.names == list(module) == ["mk"] and "mk" in module
    assert run(module["mk"]) == run(kw.kernel(MADE)) == 2
    assert "mk" not in repr(module)  # repr() compiles nothing


def test_object_code_lists_it(sim):
    code = kw.Program(MADE).compile("ptx")
    assert list(code.kernels) == ["mk"]
    assert run(code.kernel("mk")) == 2 and code.kernel("mk").signature == "mk(float* arg1)"


def test_a_kernel_of_a_header(tmp_path):
    assert run(kw.kernel('#include "k.cuh"', headers={"k.cuh": MADE})) == 2
    (tmp_path / "k.cuh").write_text(MADE)
    assert kw.module("#include <k.cuh>", include_dirs=[str(tmp_path)]).names == ["mk"]


def test_a_kernel_behind_a_false_if():
    text = "#if 0\n__global__ void old(float*);\n#endif\n__global__ void now(float* o) { *o = 3; }"
    kernel = kw.kernel(text)
    assert kernel.name == "now" and run(kernel) == 3
    assert kw.module(text).names == ["now"] and "old" not in kw.module(text)


def test_parentheses_and_instances():
    assert run(kw.kernel("__global__ void (k)(float* o) { *o = 4; }")) == 4
    text = (
        "template <class T> __global__ void t(T* o) { *o = 5; }\n"
        "template __global__ void t<float>(float*);\n"
    )
    assert kw.module(text).names == ["t", "t<float>"]
    assert run(kw.module(text)["t<float>"]) == 5


def test_the_only_kernel_is_not_the_only_one_shown():
    text = '#include "k.cuh"\n__global__ void own(float* o) {}'
    kernel = kw.kernel(text, headers={"k.cuh": MADE})
    with pytest.raises(kw.NameNotFound, match="name one of own, mk"):
        run(kernel)
    assert run(kw.kernel(text, "mk", headers={"k.cuh": MADE})) == 2
    with pytest.raises(kw.NameNotFound, match="no __global__ function"):
        kw.kernel("#define NOTHING\n__device__ int x;")


def test_variables_of_a_header():
    headers = {"v.cuh": "enum E : short { a }; __device__ E e[2]; __constant__ float w = 2;"}
    module = kw.module(
        '#include "v.cuh"\n__global__ void k(float* o) { *o = w + e[1]; }', headers=headers
    )
    assert module.symbol("e").dtype == "int16" and module.symbol("e").shape == (2,)
    module.symbol("w")[...] = 7
    assert run(module["k"]) == 7


def test_a_pack_has_them(tmp_path):
    kw.pack(tmp_path / "p.kwpack", [kw.module(MADE)], archs=["sim"])
    rows = kw.pack(tmp_path / "q.kwpack", [MADE], archs=["sm_80"])
    assert [row["kernels"] for row in rows] == [["mk"]]
