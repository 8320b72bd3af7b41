"""Transfer engines: both directions, kinds of host memory, order with streams, and misuse."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import kernwright as kw

SCALE = r"""
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


@pytest.fixture(scope="module")
def scale():
    return kw.kernel(SCALE)


@pytest.fixture
def engine():
    return kw.TransferEngine(chunk_bytes=4096, chunks=3)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 100_000])
def test_round_trip(engine, count):
    values = np.random.default_rng(count).random(count, np.float32).reshape(1, -1)
    up = engine.upload(values)
    x = up.result()
    assert (x.shape, x.dtype) == (values.shape, values.dtype)
    down = engine.download(x)
    assert np.array_equal(down.result(timeout=60), values)
    assert up.done and down.done and "done" in repr(up)
    pinned = kw.pinned(values.shape, np.float32)
    assert engine.download(x, pinned).result() is pinned
    assert np.array_equal(pinned, values)
    pinned[:] = 7
    engine.upload(pinned, x).wait()
    assert np.array_equal(x.numpy(), pinned)


def test_three_stages_give_what_one_after_the_other_gives(engine, scale):
    compute, n = kw.Stream(), 5000
    inputs = [np.full(n, i, np.float32) for i in range(12)]
    buffers = [kw.empty(n) for _ in range(3)]
    compute.wait(kw.current_stream())  # on which the memory was allocated
    downs = []
    for i, values in enumerate(inputs):
        x = buffers[i % 3]
        if i >= 3:
            downs[i - 3].wait_on(engine.upload_stream)  # the buffer is free again
        engine.upload(values, x, after=compute).wait_on(compute)
        scale[20, 256, compute](x, 2.0, n)
        downs.append(engine.download(x, after=compute))
    for i, down in enumerate(downs):
        assert np.array_equal(down.result(), np.full(n, 2 * i, np.float32))


def test_the_current_stream_comes_first(engine, scale):
    stream = kw.Stream()
    x = kw.asarray(np.ones(1000, np.float32))
    with stream:
        scale[4, 256](x, 3.0, 1000)
        assert (engine.download(x).result() == 3).all()
        engine.upload(np.full(1000, 5, np.float32), x).wait_on()
        scale[4, 256](x, 2.0, 1000)
    stream.synchronize()
    assert (x.numpy() == 10).all()


def test_host_and_device_memory_are_kept(engine):
    x = engine.upload(np.arange(50_000)).result()
    down = engine.download(x)
    del x
    gc.collect()
    assert np.array_equal(down.result(), np.arange(50_000))
    transfer = kw.TransferEngine(chunk_bytes=64).download(kw.ones(1000))  # the engine goes at once
    gc.collect()
    assert (transfer.result() == 1).all()


def test_misuse(engine):
    x = kw.zeros((4, 4))
    with pytest.raises(kw.InvalidArgument, match="at least 2 chunks"):
        kw.TransferEngine(chunks=1)
    for wrong in (0, -5):
        with pytest.raises(kw.InvalidArgument, match="at least 1"):
            kw.TransferEngine(chunk_bytes=wrong)
    with pytest.raises(OverflowError):
        kw.TransferEngine(chunk_bytes=2**70)
    with pytest.raises(kw.ArgumentError, match="must be an int"):
        kw.TransferEngine(chunks=2.5)
    with pytest.raises(kw.ArgumentError, match="NumPy array"):
        engine.upload([1, 2, 3])
    with pytest.raises(kw.ArgumentError, match="contiguous"):
        engine.upload(np.zeros((4, 4), np.float32).T[::2])
    with pytest.raises(kw.ArgumentError, match="both must agree"):
        engine.upload(np.zeros((4, 4)), x)
    with pytest.raises(kw.ArgumentError, match="both must agree"):
        engine.download(x, np.zeros((4, 5), np.float32))
    with pytest.raises(kw.ArgumentError, match="not contiguous"):
        engine.download(x.T)
    with pytest.raises(kw.ArgumentError, match="cannot be copied"):
        engine.upload(np.array(["a"]))
    frozen = np.zeros((4, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(kw.ArgumentError, match="read-only"):
        engine.download(x, frozen)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream), pytest.raises(kw.CaptureError):
        engine.download(x, after=stream)
    assert (engine.download(x).result() == 0).all()


PROGRAM = """
import os, sys
import numpy as np
import kernwright as kw

engine = kw.TransferEngine(chunk_bytes=4096)
stream, x, host = kw.Stream(), kw.zeros(1 << 18), np.ones(1 << 18, np.float32)
transfers = [engine.upload(host, x) for _ in range(8)] + [engine.download(x) for _ in range(8)]
"""

FORK = """
child = os.fork()
if child == 0:
    calls = (
        lambda: engine.upload(host, x),
        lambda: engine.download(x),
        transfers[0].wait,
        lambda: transfers[-1].result(timeout=1),
        lambda: transfers[-1].wait_on(stream),
        lambda: transfers[0].done,
        stream.synchronize,
        lambda: stream.done,
        stream.record,
        kw.Event,
        lambda: kw.time_kernel(print),
    )
    for call in calls:
        try:
            call()
        except kw.Error as error:
            assert "fork" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    del engine, stream, transfers
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("end", ["", "del engine", "sys.exit(0)", FORK])
def test_a_process_ends_well_with_transfers_on_their_way(end):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + end], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stderr


# ---- how much went between host and device


def moved(call):
    """What kw.memory.transfers() counts while `call` runs."""
    before = kw.memory.transfers()
    call()
    after = kw.memory.transfers()
    return tuple(after[name] - before[name] for name in before)


def test_copies_are_counted_with_their_bytes(engine):
    values = np.arange(1000, dtype=np.float32)
    x = kw.asarray(values)
    assert list(kw.memory.transfers()) == [
        "to_device", "to_device_bytes", "to_host", "to_host_bytes"
    ]  # fmt: skip
    assert moved(lambda: kw.asarray(values)) == (1, 4000, 0, 0)
    assert moved(lambda: kw.asarray(values[:0])) == (0, 0, 0, 0)
    assert moved(lambda: x.numpy()) == (0, 0, 1, 4000)
    assert moved(lambda: x[3].item()) == (0, 0, 1, 4)
    assert moved(lambda: x.copy()) == (0, 0, 0, 0)
    assert moved(lambda: kw.zeros(1000)) == (0, 0, 0, 0)
    copies, nbytes, *down = moved(lambda: engine.upload(values).wait())
    assert copies >= 1 and nbytes == 4000 and down == [0, 0]
    assert moved(lambda: engine.download(x).wait())[2:] == (1, 4000)


def test_kernels_and_their_host_arguments(scale):
    host = np.ones(100, np.float32)
    x = kw.asarray(host)
    assert moved(lambda: scale[1, 128](x, 2.0, 100)) == (0, 0, 0, 0)
    assert moved(lambda: scale[1, 128](kw.In(host), 2.0, 100)) == (1, 400, 0, 0)
    assert moved(lambda: scale[1, 128](kw.InOut(host), 2.0, 100)) == (1, 400, 1, 400)


def test_cuda_arrays_are_counted():
    values = np.ones((5, 8), np.float32)
    array = kw.CudaArray(values.shape)
    assert moved(lambda: array.set(values)) == (1, 160, 0, 0)
    assert moved(lambda: array.numpy()) == (0, 0, 1, 160)


def test_copies_of_all_threads_are_counted():
    values = np.ones(10, np.float32)

    def work():
        for _ in range(50):
            kw.asarray(values).numpy()

    def run():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert moved(run) == (200, 8000, 200, 8000)


def test_devices_count_for_themselves():
    with pytest.raises(kw.Error):
        kw.memory.transfers("nonsense")
    assert kw.memory.transfers(kw.current_device()) == kw.memory.transfers()


@pytest.mark.parametrize("qos", ["urgent", "normal", "best_effort"])
def test_copies_of_each_class(engine, qos):
    values = np.arange(5000, dtype=np.int32)
    staged = kw.pinned(5000, "i4")
    staged[...] = values[::-1]
    x = engine.upload(values, qos=qos).result()
    assert (engine.download(x, qos=qos).result() == values).all()
    engine.upload(staged, out=x, qos=qos).wait()
    assert (engine.download(x, out=staged, qos=qos).result() == values[::-1]).all()
    y = engine.upload(values, qos=qos)
    assert (engine.download(y.result() + 1, qos=qos).result() == values + 1).all()


def test_an_unknown_class_of_copies(engine):
    with pytest.raises(kw.InvalidArgument, match='"fast": urgent, normal or best_effort'):
        engine.upload(np.ones(3, np.float32), qos="fast")
