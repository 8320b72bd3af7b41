"""Errors of calls name the function by its public path, the argument and its value."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import kernwright as kw

KERNEL = "__global__ void f(float* o, int n) { o[0] = n; }"
STRUCT = "struct S { float a; int b; };"


def message(call, error=kw.Error):
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, kw.Error)
    return str(raised.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: kw.eye("a"), "kw.eye(): N is an int, got str 'a'"),
        (lambda x: kw.eye(3, k=2.5), "kw.eye(): k is an int, got float 2.5"),
        (lambda x: kw.eye(2**70), f"kw.eye(): N of {2**70} is out of range"),
        (lambda x: kw.diag(x, k="a"), "kw.diag(): k is an int, got 'a'"),
        (lambda x: kw.arange("a"), "kw.arange(): start is a number, got str 'a'"),
        (lambda x: kw.arange(None), "kw.arange(): start is a number, got None"),
        (lambda x: kw.arange(0, b"x"), "kw.arange(): stop is a number, got bytes b'x'"),
        (lambda x: kw.arange(1, 2**80), f"kw.arange(): stop of {2**80} is out of range"),
        (lambda x: kw.linspace("a", 3), "kw.linspace(): start is a number, got str 'a'"),
        (lambda x: kw.linspace(0, 3, 2.5), "kw.linspace(): num is an int, got float 2.5"),
        (lambda x: kw.linspace(0, 3, -1), "num must be at least 0"),
        (lambda x: kw.astype(x, "f4", copy="a"), "kw.astype(): copy is a bool, got str 'a'"),
        (lambda x: x.astype("f4", copy="a"), "kw.Array.astype(): copy is a bool, got str 'a'"),
        (lambda x: kw.concat(3), "kw.concat(): arrays is a sequence, got int 3"),
        (lambda x: kw.nn.rms_norm(x, x, eps="a"), "kw.nn.rms_norm(): eps is a number, got"),
        (lambda x: kw.fft.fft(x, axis="a"), "kw.fft.fft(): axis is an int, got str 'a'"),
        (lambda x: kw.fft.fftfreq(3, d=0), "division by zero (called with n=3, d=0)"),
        (lambda x: kw.linalg.matrix_power(kw.eye(2), np.array(["a"])), "_power(): n is a number"),
        (
            lambda x: kw.random.normal((2,), mean="a"),
            "kw.random.normal(): mean is a number or an array of numbers, got str",
        ),
        (lambda x: kw.memory.FailingAdaptor(kw.memory.resource(), "a"), "first is an int, got"),
        (lambda x: kw.fuse("a + b", name=3), "the name of a kernel is a str, got int 3"),
        (
            lambda x: kw.Judge(device="\udc80"),
            "device has a lone surrogate at index 0, which is no character",
        ),
        (lambda x: kw.synchronize("a"), "kw.synchronize(): timeout is a number, got str 'a'"),
        (lambda x: kw.nn.quant.formats(1), "kw.nn.quant.formats(): got 1"),
        (lambda x: kw.empty(2**70), f"shape {2**70}: a shape cannot have the extent {2**70}"),
        (lambda x: kw.zeros((2, -1)), "shape (2, -1): a shape cannot have the extent -1"),
        (lambda x: kw.zeros((2**64,)), f"shape ({2**64},): a shape cannot have the extent"),
        (lambda x: kw.zeros((2, "a")), "got (2, 'a') with the str 'a'"),
        (lambda x: x[2**70], f"index {2**70} is out of bounds for axis 0 with size 4"),
        (lambda x: x["a"], "got str 'a'"),
        (lambda x: kw.Device(2**80), f"there is no device {2**80}"),
        (lambda x: float(x), "float() of an array of shape (4,)"),
        (lambda x: kw.kernel(KERNEL).occupancy(-1), "block of -1: a block has at least 1 thread"),
        (lambda x: kw.kernel(KERNEL).occupancy(32, -1), "shared_bytes of -1 is out of range"),
        (lambda x: kw.asarray(np.zeros(2, [("a", "f4")])), 'pass values.view("uint8")'),
    ],
)
def test_the_argument_and_its_value_are_named(call, words):
    assert words in message(lambda: call(kw.ones(4)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kw.nn.softmax(1, axs=1), "kw.nn.softmax(): there is no parameter axs (did you me"),
        (lambda: kw.nn.quant.formats(nme=1), "kw.nn.quant.formats(): there is no parameter nme"),
        (lambda: kw.random.normal(shp=1), "kw.random.normal(): there is no parameter shp"),
        (lambda: kw.exp(kw.ones(1), where=True), "no parameter where (kw.where(condition, result,"),
        (
            lambda: kw.nanstd(1, mean=0),
            "kw.nanstd(): there is no parameter mean (the mean is made in",
        ),
        (lambda: kw.var(1, mean=0), "kw.var(): there is no parameter mean (the mean is made in"),
        (
            lambda: kw.matmul(1, 2, axes=[]),
            "kw.matmul(): there is no parameter axes (kw.moveaxis() ",
        ),
        (
            lambda: kw.vecdot(1, 2, axes=[]),
            "kw.vecdot(): there is no parameter axes (kw.moveaxis() ",
        ),
        (lambda: kw.add(1, 2, dtype="f8"), "kw.add(): there is no parameter dtype (x.astype() con"),
        (
            lambda: kw.add(1, 2, casting="unsafe"),
            "no parameter casting (out= has the result's kind",
        ),
        (lambda: kw.linalg.solve(3), "kw.linalg.solve(): x2 is missing"),
        (lambda: kw.fft.fft(n=3), "kw.fft.fft(): x is missing"),
        (lambda: kw.optim.SGD([], lrr=1), "kw.optim.SGD(): there is no parameter lrr (did you"),
        (lambda: kw.random.Generator(sed=1), "kw.random.Generator(): there is no parameter sed"),
        (lambda: kw.random.Generator(1).gamma(), "kw.random.Generator.gamma(): alpha is missing"),
        (lambda: kw.optim.Adam(kw.ones(3)).step(), "kw.optim.Adam.step(): grads is missing"),
        (lambda: kw.nn.Linear(2, 3).load(), "kw.nn.Linear.load(): source is missing"),
        (lambda: kw.bench.Case(), "kw.bench.Case(): "),
        (lambda: kw.llm.models.Unread(), "kw.llm.models.Unread(): shape is missing"),
        (lambda: kw.tune.tune_kernel("a"), "kw.tune.tune_kernel(): kernel_source is missing"),
        (lambda: kw.memory.report(devic=1), "kw.memory.report(): there is no parameter devic"),
        (
            lambda: kw.checks(limt=1),
            "kw.checks(): there is no parameter limt (did you mean l",
        ),
        (
            lambda: kw.elementwise("a", nme=1),
            "no parameter nme (did you mean name?); it takes (t",
        ),
        (lambda: kw.elementwise("T x", "T y", "y = x", nme=1), "no parameter nme (did you mean na"),
        (lambda: kw.reduction(3), "kw.reduction(): neutral is missing; it takes (dtype_out, neutr"),
        (
            lambda: kw.memory.MemoryBlock(),
            "kw.memory.MemoryBlock cannot be made by calling its class",
        ),
    ],
)
def test_functions_have_their_public_path(call, words):
    assert words in message(call)


def test_classes_have_their_public_name_in_messages_of_python():
    with pytest.raises(TypeError, match=r"'kw\.Stream' object is not iterable"):
        list(kw.Stream())
    with pytest.raises(AttributeError, match=r"'kw\.memory\.PoolResource' object has no"):
        kw.memory.PoolResource().nosuch
    with pytest.raises(TypeError, match=r"unhashable type: 'kw\.Array'"):
        hash(kw.ones(1))


def test_an_attribute_that_is_not_there_is_asked_for():
    half = kw.ones(2, "bfloat16")
    assert not hasattr(half, "__cuda_array_interface__") and not hasattr(kw.ones, "nosuch")
    assert getattr(kw.Device(0).attributes, "nosuch", None) is None


def test_only_one_element_is_true_or_false():
    assert bool(kw.ones(1)) and bool(kw.ones(())) and not kw.zeros((1, 1))
    for shape in ((0,), (2,), (2, 2)):
        text = message(lambda shape=shape: bool(kw.ones(shape)), kw.InvalidArgument)
        assert f"the truth value of an array of shape {shape} is ambiguous" in text
        assert "kw.any(x)" in text


def test_advice_for_structs_and_addresses_loses_nothing():
    const = kw.kernel(STRUCT + "__global__ void f(const S* s, int* o) { *o = s[1].b; }")
    text = message(lambda: const[1, 1](kw.zeros(4), None))
    assert 'pass s.view("uint8")' in text and "astype" not in text
    assert "np.zeros(n, kernel.parameters[0].dtype)" in text and "kw.In(values)" in text
    values, out = np.zeros(2, const.parameters[0].dtype), kw.zeros(1, "int32")
    values["b"] = 7
    for given in (kw.In(values), kw.asarray(values.view("uint8"))):
        out.fill(0)
        const[1, 1](given, out)
        assert int(out) == 7
    written = kw.kernel(STRUCT + "__global__ void f(S* s) { s->b = 5; }")
    text = message(lambda: written[1, 1](kw.zeros(4, "complex64")[::2]))
    assert "kw.InOut(values)" in text and "astype" not in text
    written[1, 1](kw.InOut(values))
    assert values["b"][0] == 5
    text = message(lambda: kw.kernel("__global__ void f(float** p) {}")[1, 1](kw.zeros(3)))
    assert "a.ptr for a in arrays" in text and "astype" not in text


def test_a_null_character_ends_no_name():
    module = kw.module("__device__ int w; " + KERNEL)
    for call in (
        lambda: kw.Device("sim\0x"),
        lambda: module.symbol("w\0"),
        lambda: module.kernel("f\0g"),
        lambda: kw.kernel(KERNEL, name="f\0g"),
        lambda: kw.Program(KERNEL).compile("ptx").kernel("f\0"),
    ):
        assert "null character" in message(call, kw.InvalidArgument)


def test_a_scope_is_left_once():
    first, second = kw.Stream(), kw.Stream()
    with first:
        second.__enter__()
        second.__exit__(None, None, None)
        text = message(lambda: second.__exit__(None, None, None), kw.InvalidArgument)
        assert "a kw.Stream is left" in text and kw.current_stream() == first
        message(lambda: kw.Device(0).__exit__(None, None, None), kw.InvalidArgument)
        found = []
        thread = threading.Thread(
            target=lambda: found.append(message(lambda: first.__exit__(None, None, None)))
        )
        thread.start()
        thread.join()
        assert "another thread" in found[0]
    message(lambda: first.__exit__(None, None, None), kw.InvalidArgument)
    capture = kw.Graph().capture(first)
    with capture:
        pass
    message(lambda: capture.__exit__(None, None, None), kw.InvalidArgument)


def test_scopes_may_end_in_another_order():
    outer = kw.current_stream()
    first, second = kw.Stream(), kw.Stream()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert kw.current_stream() == second
    second.__exit__(None, None, None)
    assert kw.current_stream() == outer


def test_a_graph_outlives_its_stream():
    out, stream, graph = kw.zeros(1), kw.Stream(), kw.Graph()
    with graph.capture(stream):
        kw.kernel(KERNEL)[1, 1](out, 7)
    del stream
    gc.collect()
    graph.launch()
    kw.synchronize()
    assert float(out) == 7


def test_errors_leave_arguments_behind_in_pickles():
    error = None
    try:
        kw.eye(threading.Lock())
    except kw.ArgumentError as raised:
        error = raised
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kw.ArgumentError and str(again) == str(error)


@pytest.mark.parametrize("on_device", [False, True])
def test_a_copy_of_a_generator_goes_on_by_itself(on_device):
    generator = kw.random.Generator(3, on_device=on_device)
    generator.normal(5)
    copies = [copy.copy(generator), copy.deepcopy(generator)]
    copies.append(pickle.loads(pickle.dumps(generator)))
    wanted = generator.normal(5).numpy().tolist()
    assert all(one.normal(5).numpy().tolist() == wanted for one in copies)


def test_errors_behind_code_of_the_user_are_not_said_again():
    def mine():
        return kw.eye("a")

    assert message(lambda: kw.time_kernel(mine)).startswith("kw.eye(): N is an int")
