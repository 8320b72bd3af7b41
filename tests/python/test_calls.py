"""Calls with wrong arguments: errors of this package, in the words of whoever called."""

import inspect
import pathlib
import pickle

import numpy as np
import pytest

import kernwright as kw

KERNEL = "__global__ void f(float* o, int n) { o[0] = n; }"
# Words of the binding library, without a meaning for users.
DUMPS = ("incompatible", "Unable to cast", "pybind", "C++ type", "kernwright::", "_core.")
DUMPS += (
    "arg0",
    "arg1",
    "index-sized",
    "Python int too large",
    "unsupported operand type",
    "std::",
)


@pytest.mark.parametrize(
    ("call", "wrong", "nearest"),
    [
        (lambda: kw.LaunchConfig(grid=1, blocks=32), "blocks", "block"),
        (lambda: kw.LaunchConfig(grid=1, block=1, shared=3), "shared", "shared_bytes"),
        (lambda: kw.Stream(prio=1), "prio", "priority"),
        (lambda: kw.Event(timings=True), "timings", "timing"),
        (lambda: kw.empty(3, dtyp="f4"), "dtyp", "dtype"),
        (lambda: kw.zeros(3, dtyp="f4"), "dtyp", "dtype"),
        (lambda: kw.kernel(KERNEL, nam="f"), "nam", ""),
        (lambda: kw.kernel(KERNEL).occupancy(blok=3), "blok", "block"),
        (lambda: kw.kernel(KERNEL).forall(3, strem=None), "strem", "stream"),
        (lambda: kw.memory.PoolResource(limits=3), "limits", "limit"),
        (lambda: kw.memory.trim(kep=3), "kep", "keep"),
        (lambda: kw.Program(sorce=KERNEL), "sorce", "source"),
        (lambda: kw.module(KERNEL).symbol("w", shap=3), "shap", "shape"),
        (lambda: kw.checks("init", limt=3), "limt", "limit"),
        (lambda: kw.cache.trim(limits=3), "limits", "limit"),
        (lambda: kw.synchronize(timout=1), "timout", "timeout"),
        (lambda: kw.zeros(3).astype("f4", copi=True), "copi", "copy"),
        (lambda: kw.zeros(3).sum(dim=0), "dim", "axis"),
        (lambda: kw.permute_dims(kw.zeros((2, 3)), dims=(1, 0)), "dims", "axes"),
        (lambda: kw.nn.MLP(dims=4, hidden_dim=8), "dims", "dim"),
    ],
)
def test_a_misspelled_keyword_names_the_nearest(call, wrong, nearest):
    with pytest.raises(kw.ArgumentError) as raised:
        call()
    assert wrong in str(raised.value) and nearest in str(raised.value)
    assert not nearest or f"did you mean {nearest}?" in str(raised.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kw.kernel(KERNEL).occupancy(), "kw.Kernel.occupancy(): block is missing"),
        (lambda: kw.kernel(KERNEL).occupancy((16, 16)), "block is an int, got tuple (16, 16)"),
        (lambda: kw.kernel(KERNEL).occupancy(1.5), "block is an int, got float 1.5"),
        (lambda: kw.Stream(1, 2), "kw.Stream(): got 2 arguments by position, 1 at most"),
        (lambda: kw.Event().elapsed_ms(3), "start is a kw.Event, got int 3"),
        (lambda: kw.zeros(), "kw.zeros(): shape is missing"),
        (lambda: kw.full(3), "kw.full(): fill_value is missing"),
        (lambda: kw.zeros(3, shape=3), "shape is given twice"),
        (lambda: kw.zeros(3, 4), "zeros((3, 4))"),
        (lambda: kw.ones_like([1, 2]), "take an array, got a list"),
        (lambda: kw.warmup(3), "kw.warmup(): kernels is a sequence, got int 3"),
        (lambda: kw.memory.alloc(np.ones(3)), "a number of bytes, got numpy.ndarray"),
        (lambda: kw.Stream().synchronize("x"), "kw.Stream.synchronize(): timeout is a number, got"),
        (lambda: kw.zeros((2, 3)).transpose("ab"), "axes of transpose() are ints, got str"),
        (lambda: kw.kernel(KERNEL)[np.array([2, 2]), 32], "a grid must be an int"),
        (lambda: kw.Kernel(), "kw.Kernel cannot be made by calling its class"),
        (lambda: kw.Array(3), "kw.Array cannot be made by calling its class"),
        (lambda: kw.memory.MemoryBlock(), "kw.memory.MemoryBlock cannot be made by calling"),
    ],
)
def test_messages_name_the_parameter_and_the_value(call, words):
    with pytest.raises(kw.ArgumentError) as raised:
        call()
    assert words in str(raised.value)


def test_numbers_out_of_range_are_range_errors():
    with pytest.raises(kw.ArgumentRangeError, match="block of 1000000000000 is out of range"):
        kw.kernel(KERNEL).occupancy(10**12)
    with pytest.raises(kw.ArgumentRangeError, match="priority"):
        kw.Stream(2**31)


def functions():
    """Every public function, class and method, by name."""
    module = kw.module("__device__ float w[4]; __global__ void f(float* o) { o[0] = w[1]; }")
    objects = [
        *(kw.zeros((2, 3)), kw.Stream(), kw.Event(), kw.Graph(), kw.kernel(KERNEL), module),
        *(kw.Program(KERNEL).compile("ptx"), kw.Program(KERNEL), kw.CudaArray((4, 4))),
        *(kw.Pointer(0), kw.LaunchConfig(1, 1), kw.TransferEngine(), kw.ProgramOptions()),
    ]
    for name in kw.__all__:
        value = getattr(kw, name)
        if inspect.ismodule(value):
            for inner in getattr(value, "__all__", ()):
                yield f"{name}.{inner}", getattr(value, inner)
        else:
            yield name, value
    for thing in objects:
        for name in dir(thing):
            if not name.startswith("_") and callable(getattr(type(thing), name)):
                yield f"{type(thing).__name__}.{name}", getattr(thing, name)


def test_junk_raises_errors_of_this_package(sim, tmp_path, monkeypatch):
    # Not on a GPU: its driver reads through whatever is given to it as a stream.
    monkeypatch.chdir(tmp_path)
    harmless = ("cache.clear", "cache.trim", "cache.verify", "memory.use", "memory.set_limit")
    harmless += ("tune.library",)  # measures for minutes
    junk = [None, -1, 10**30, 2.5, "a\0b", b"x", object(), [], {}, np.ones(3), 1j, kw.zeros(2)]
    junk += [kw.Stream.__new__(kw.Stream), kw.Array.__new__(kw.Array)]
    calls = [((j,), {}) for j in junk] + [((1, j), {}) for j in junk]
    calls += [((), {}), ((1,) * 20, {}), ((), {"nonsense": 1}), ((3,), {"devic": None})]
    tried = 0
    for name, function in functions():
        is_error = isinstance(function, type) and issubclass(function, BaseException)
        if not callable(function) or is_error or name in harmless or inspect.isabstract(function):
            continue
        for arguments, options in calls:
            if name in ("memory.torch_allocator", "checks.CheckFailed"):
                continue  # wants torch; an exception
            try:
                function(*arguments, **options)
            except kw.Error as error:
                assert str(error) and not any(words in str(error) for words in DUMPS), (name, error)
            tried += 1
    assert tried > 2000


def test_errors_of_the_users_own_code_are_passed_on():
    class Odd:
        def __index__(self):
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$") as raised:
        kw.zeros((2, Odd()))
    assert not isinstance(raised.value, kw.Error)

    def wrong():
        raise TypeError("in the callable")

    with pytest.raises(TypeError, match=r"^in the callable$") as raised:
        kw.time_kernel(wrong)
    assert not isinstance(raised.value, kw.Error)


def test_functions_look_like_functions():
    assert "dtype" in inspect.signature(kw.zeros).parameters
    assert kw.zeros.__name__ == "zeros" and "zeros" in kw.zeros.__doc__
    assert inspect.isroutine(kw.zeros)
    for function in (kw.zeros, kw.kernel, kw.asarray, kw.memory.stats, kw.cache.info, kw.lint):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_text_still_finds_its_line():
    kernel = kw.kernel("""
        __global__ void wrong(float* o) { o[0] = missing; }""")
    with pytest.raises(kw.CompileError) as raised:
        kernel.compile()
    found = raised.value.diagnostics[0]
    assert found.file == __file__
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert "missing" in lines[found.line - 1]
