"""torch and CuPy beside us on one GPU; these libraries and a GPU are needed."""

import numpy as np
import pytest

import kernwright as kw

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or kw.current_device().is_simulated,
    reason="torch tensors live on a GPU",
)


def test_tensors_go_straight_into_a_launch(saxpy):
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    y = torch.ones_like(x)
    saxpy[4, 256](2.0, x, y, 1000)
    torch.testing.assert_close(y, 2 * x + 1)
    with pytest.raises(kw.ArgumentError, match="float64"):
        saxpy[4, 256](2.0, x.double(), y, 1000)
    with pytest.raises(kw.ArgumentError, match="contiguous"):
        saxpy[1, 256](2.0, x[::2], y, 500)
    with pytest.raises(kw.ArgumentError, match="host memory"):
        saxpy[4, 256](2.0, x.cpu(), y, 1000)


def test_the_stream_that_torch_works_on_is_waited_for(saxpy):
    side = torch.cuda.Stream()
    y = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        x = torch.ones(1 << 20, device="cuda")
        torch.cuda._sleep(20_000_000)
        x *= 3
        saxpy[4096, 256](1.0, x, y, 1 << 20)
    torch.cuda.synchronize()
    assert (y == 3).all()


def test_memory_is_shared_both_ways():
    x = torch.ones(8, dtype=torch.bfloat16, device="cuda")
    ours = kw.from_dlpack(x)
    assert ours.ptr == x.data_ptr()
    ours[...] = 2
    assert (x == 2).all()
    back = torch.from_dlpack(kw.full(8, 5.0))
    assert (back == 5).all()


def test_streams_of_torch_are_streams(saxpy):
    stream = torch.cuda.Stream()
    x, y = kw.ones(8), kw.zeros(8)
    x.device.synchronize()
    saxpy[1, 8, stream](1.0, x, y, 8)
    stream.synchronize()
    assert (y.numpy() == 1).all()


def test_cupy_arrays(saxpy):
    cupy = pytest.importorskip("cupy")
    x, y = cupy.arange(100, dtype="float32"), cupy.zeros(100, "float32")
    saxpy[1, 128](2.0, x, y, 100)
    np.testing.assert_array_equal(y.get(), 2 * np.arange(100))
    assert kw.asarray(x).ptr == x.data.ptr
