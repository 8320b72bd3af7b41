"""A request made again from the same line: the same kernel, unless that would share state."""

import gc
import weakref

import pytest

import kernwright as kw
from kernwright._jit import recent as _recent

TEXT = "__global__ void put(int* x) { x[0] = 1; }"


def ask(text=TEXT, **options):
    return kw.kernel(text, **options)


def test_the_same_request_gets_the_same_object_and_is_counted():
    first = ask()
    before = _recent.hits()
    assert ask() is first
    assert _recent.hits() == before + 1


def test_another_line_or_text_or_option_gets_its_own():
    first = ask()
    assert kw.kernel(TEXT) is not first  # another line: messages must name it
    assert ask(TEXT + " ") is not first
    assert ask(fast_math=True) is not first
    assert ask(fast_math=True) is ask(fast_math=True)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int count = 3; __global__ void put(int* x) { x[0] = count++; }",
        "__constant__ int table[4]; __global__ void put(int* x) { x[0] = table[0]; }",
        "__global__ void put(int* x) { static int count; x[0] = ++count; }",
    ],
)
def test_a_text_with_variables_begins_anew(text):
    assert ask(text) is not ask(text)


def test_a_count_in_a_variable_is_not_shared(sim):
    text = "__device__ int count; __global__ void next(int* x) { x[0] = ++count; }"
    for _ in range(2):
        x = kw.zeros(1, "int32")
        ask(text)[1, 1](x)
        assert x.item() == 1


def test_device_functions_are_no_variables():
    text = "__device__ int two() { return 2; } __global__ void put(int* x) { x[0] = two(); }"
    assert ask(text) is ask(text)


def test_headers_of_the_user_may_change():
    options = {"headers": {"one.h": "#define ONE 1\n"}}
    assert ask(**options) is not ask(**options)


def test_wrong_options_are_refused_each_time():
    ask(fast_math=True)
    for _ in range(2):
        with pytest.raises(TypeError, match="fast_math"):
            ask(fast_math=1)
        with pytest.raises(TypeError, match="arch"):
            ask(arch=["sm_90"])


def test_only_so_many_are_remembered():
    oldest = weakref.ref(ask("__global__ void oldest() {}"))
    for i in range(_recent._LIMIT):
        ask(f"__global__ void k{i}() {{}}")
    gc.collect()
    assert len(_recent._kernels) == _recent._LIMIT
    assert oldest() is None
    _recent.clear()
    assert not _recent._kernels
