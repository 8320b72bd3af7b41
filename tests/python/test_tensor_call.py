"""What kernwright.torch is built on, without torch: tensors of a double on our own memory."""

import sys

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core


class Tensor:
    """As much of torch.Tensor as a call reads; strides count elements."""

    def __init__(self, array, strides=None, shape=None, at=0):
        self.array, self.at = array, at
        self.shape = tuple(array.shape if shape is None else shape)
        size = array.itemsize
        self.strides = tuple(s // size for s in array.strides) if strides is None else strides
        self.dtype = f"torch.{array.dtype}"

    def data_ptr(self):
        return self.array.ptr + self.at * self.array.itemsize if self.array.size else 0

    def stride(self):
        return self.strides

    def view(self, shape):
        return Tensor(self.array.reshape(shape))

    def numpy(self):
        return self.array.numpy()


def tensor(values):
    return Tensor(kw.asarray(np.asarray(values, np.float32)))


class Maker:
    """Allocates, and counts."""

    def __init__(self, **wrong):
        self.made, self.wrong = [], wrong

    def __call__(self, shape, dtype):
        array = kw.empty(self.wrong.get("shape", shape), self.wrong.get("dtype", dtype))
        self.made.append(Tensor(array))
        return self.made[-1]


def call(function, *arguments, make=None, stream=0):
    return _core._call_on_tensors(function, arguments, make or Maker(), kw.current_device(), stream)


VALUES = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


def test_results_are_the_tensors_that_were_made():
    make, x = Maker(), tensor(VALUES)
    y = call(_core._softmax, x, -1, 1.0, None, None, None, False, make=make)
    assert y is make.made[0]
    power = np.exp(VALUES - VALUES.max(-1, keepdims=True))
    np.testing.assert_allclose(y.numpy(), power / power.sum(-1, keepdims=True), rtol=1e-5)
    # Several results, None among them, and what the kernels need meanwhile.
    make = Maker()
    dx, dweight, dbias, _ = call(_core._norm_backward, "rms", x, x, tensor(np.ones(8)), 1e-5, False,
                              None, make=make)  # fmt: skip
    assert dbias is None and dx in make.made and dweight in make.made
    hat = VALUES / np.sqrt((VALUES**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(dweight.numpy(), (VALUES * hat).sum(0), rtol=1e-4)


def test_strides_offsets_and_empty_tensors():
    base = kw.asarray(VALUES)
    turned = Tensor(base, strides=(1, 8), shape=(8, 6))
    y = call(_core._activate, "relu", turned, 1.0, 1.0)
    np.testing.assert_array_equal(y.numpy(), np.maximum(VALUES.T, 0))
    part = Tensor(base, strides=(8, 2), shape=(6, 3), at=1)
    y = call(_core._activate, "relu", part, 1.0, 1.0)
    np.testing.assert_array_equal(y.numpy(), np.maximum(VALUES[:, 1:7:2], 0))
    nothing = Tensor(kw.empty((0, 3)))
    assert call(_core._activate, "relu", nothing, 1.0, 1.0).shape == (0, 3)
    reshaped = call(lambda x: kw.nn.relu(x).reshape((2, 24)), Tensor(base))
    assert reshaped.shape == (2, 24)


def test_nothing_else_is_allocated_and_the_scope_ends():
    x = tensor(VALUES)
    call(_core._softmax, x, -1, 1.0, None, None, None, False)

    def inside(array):
        before = kw.memory.stats()["allocations"]
        y = kw.nn.softmax(array)
        seen.append(kw.memory.stats()["allocations"] - before)
        return y

    seen, kept = [], kw.empty((6, 8))
    # The maker hands out what is there already: an allocation would be one of ours.
    assert call(inside, x, make=lambda shape, dtype: Tensor(kept)).array is kept
    assert seen == [0]
    before = kw.memory.stats()["allocations"]
    kw.nn.softmax(kw.asarray(VALUES))
    assert kw.memory.stats()["allocations"] > before


def test_work_is_on_the_stream_that_was_named():
    stream = kw.Stream()
    seen = []

    def inside(array):
        seen.append(kw.current_stream().handle)
        return kw.nn.relu(array)

    y = call(inside, tensor(VALUES), stream=stream.handle)
    stream.synchronize()
    np.testing.assert_array_equal(y.numpy(), np.maximum(VALUES, 0))
    assert seen == [stream.handle]
    assert kw.current_stream() is None or kw.current_stream().handle != stream.handle


def test_lists_are_changed_in_place():
    p, g = tensor(np.ones(5)), tensor(np.ones(5))
    states = [tensor(np.zeros(5)) for _ in range(2)]
    options = {"rate": 0.1, "step": 1}
    call(_core._optimizer_step, "sgd", [p], [g], [], [], [], [], options)
    np.testing.assert_allclose(p.numpy(), 0.9)
    options = {"rate": 0.1, "step": 1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    call(_core._optimizer_step, "adam", [p], [g], [states[0]], [states[1]], [], [], options)
    np.testing.assert_allclose(p.numpy(), 0.8, rtol=1e-5)


def test_what_goes_wrong_is_told_and_leaves_the_thread_as_it_was():
    x = tensor(VALUES)

    def failing(shape, dtype):
        raise MemoryError("no more tensors")

    relu = (_core._activate, "relu", x, 1.0, 1.0)
    with pytest.raises(MemoryError, match="no more tensors"):
        call(*relu, make=failing)
    with pytest.raises(kw.Error, match=r"float32 tensor of shape \(6, 8\)"):
        call(*relu, make=Maker(shape=(3,)))
    with pytest.raises(kw.Error, match="float32 tensor"):
        call(*relu, make=Maker(dtype="float64"))
    with pytest.raises(kw.Error, match="no result"):
        call(lambda x: x, x)
    with pytest.raises(kw.Error, match="no result"):
        call(lambda x: kw.nn.relu(x)[1:], x)
    odd = tensor(VALUES)
    odd.dtype = "torch.complex32"
    with pytest.raises(kw.ArgumentError, match="complex32"):
        call(_core._activate, "relu", odd, 1.0, 1.0)
    with pytest.raises(kw.InvalidArgument):
        call(_core._softmax, x, 7, 1.0, None, None, None, False)
    assert np.isfinite(kw.nn.relu(kw.asarray(VALUES)).numpy()).all()


def test_without_torch_the_import_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "kernwright.torch", raising=False)
    with pytest.raises(ImportError, match="pip install torch"):
        import kernwright.torch  # noqa: F401
