"""Graphs of one pool share the memory of their captures, and never overwrite what is in use."""

import gc

import numpy as np
import pytest
from children import run_child

import kernwright as kw

MiB = 1 << 20


@pytest.fixture(autouse=True)
def resource():
    """Arrays of a pool, also on the simulated device, where each has memory of its own else."""
    pool = kw.memory.PoolResource(kw.memory.DeviceResource())
    with kw.memory.use(pool):
        yield pool


@pytest.fixture
def reserved(resource):
    """A function that gives the bytes reserved, without the free ones."""

    def count():
        gc.collect()
        kw.synchronize()
        resource.trim()
        return resource.stats()["reserved"]

    return count


def workspace(n):
    """A graph's work on `n` elements, with three arrays of its own at a time."""
    x = kw.zeros(n)

    def run():
        y = x + 1
        z = y * y
        x[...] = z + y

    return x, run


def expected(value):
    return (value + 1) ** 2 + value + 1


def test_graphs_of_many_sizes_hold_the_memory_of_the_largest(reserved):
    sizes = [(20 - i) * (MiB // 8) for i in range(20)]  # floats: 10 MiB to 0.5 MiB an array
    work = [workspace(n) for n in sizes]
    for _, run in work:
        run()
    for x, _ in work:
        x[...] = 0
    start = reserved()
    pool = kw.GraphPool()
    graphs = []
    held = []
    for _, run in work:
        graph = kw.Graph(pool=pool)
        with graph.capture():
            run()
        graphs.append(graph)
        held.append(reserved() - start)
    assert held[0] >= 3 * 10 * MiB
    assert held[-1] <= 1.1 * held[0]

    value = np.zeros(len(sizes), "f8")
    for i in [0, 19, 7, 7, 3, 0, 12, 19, 1]:
        graphs[i].launch()
        value[i] = expected(value[i])
    for (x, _), wanted in zip(work, value, strict=True):
        assert (x.numpy() == wanted).all()
    del graph, graphs
    assert reserved() - start == held[-1]  # of the pool, for its next graphs
    del pool
    assert reserved() <= start


def test_a_graph_without_a_pool_shares_nothing(reserved):
    _, run = workspace(MiB)
    run()
    start = reserved()
    graphs = []
    for _ in range(3):
        graphs.append(kw.Graph())
        with graphs[-1].capture():
            run()
    assert graphs[0].pool is None
    assert reserved() - start >= 3 * 2 * 4 * MiB


def test_an_array_that_is_held_is_not_given_to_later_captures():
    pool = kw.GraphPool()
    x = kw.arange(1000, dtype="float32")
    first, second = kw.Graph(pool=pool), kw.Graph(pool=pool)
    with first.capture():
        kept = x + 1
    with second.capture():
        others = [x * 0 - 1 for _ in range(10)]
    first.launch()
    second.launch()
    np.testing.assert_array_equal(kept.numpy(), np.arange(1000) + 1)
    assert all((other.numpy() == -1).all() for other in others)

    address = kept.ptr
    del kept
    third = kw.Graph(pool=pool)
    with third.capture():
        again = [x + 2 for _ in range(10)]
    assert address in [array.ptr for array in again]  # nobody holds it: it is used again


def test_what_another_graph_reads_is_held_by_that_graph():
    pool = kw.GraphPool()
    x = kw.ones(5000)
    stream = kw.Stream()
    first, second, third = (kw.Graph(pool=pool) for _ in range(3))
    total = kw.zeros(5000)
    with first.capture(stream):
        made = x * 3
    with second.capture(stream):
        _ = x + x  # memory of this capture, before it reads that of the first
        total += made
        del made
        others = [x * 0 for _ in range(4)]
    with third.capture(stream):
        others += [x * 0 for _ in range(8)]
    first.launch(stream)
    for graph in (third, second, third, second):
        graph.launch(stream)
    stream.synchronize()
    assert (total.numpy() == 6).all()


def test_launches_on_two_streams_wait_for_each_other():
    spin = kw.kernel(r"""
    extern "C" __global__ void spin(const float* x, float* y, int n, int rounds) {
        for (int k = 0; k < rounds; ++k)
            for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] + k;
    }""")
    pool = kw.GraphPool()
    n = 256
    results = []
    graphs = []
    streams = [kw.Stream(), kw.Stream()]
    for i in range(2):
        x, out = kw.full(n, 10.0 * i), kw.zeros(n)
        graph = kw.Graph(pool=pool)
        with graph.capture(kw.Stream()) as stream:
            middle = kw.empty(n)
            spin[1, 64, stream](x, middle, n, 300)
            out[...] = middle * 2
            address = middle.ptr
            del middle
        graphs.append(graph)
        results.append((address, out, x))
    assert results[0][0] == results[1][0]
    kw.synchronize()
    for k in range(6):
        graphs[k % 2].launch(streams[k % 2])
        if k == 3:
            graphs[1].launch(streams[0])
    kw.synchronize()
    for i, (_, out, _) in enumerate(results):
        assert (out.numpy() == (10 * i + 299) * 2).all()


def test_a_launch_waits_for_readers_of_memory_that_was_used_again():
    slow = kw.kernel(r"""
    extern "C" __global__ void slow(const float* x, float* y, int n, int rounds) {
        float sum = 0;
        for (int k = 0; k < rounds; ++k) sum += x[k % n];
        y[0] = sum;
    }""")
    pool = kw.GraphPool()
    one = kw.ones(64)
    first, second = kw.Graph(pool=pool), kw.Graph(pool=pool)
    with first.capture():
        made = one + 0
    reader = kw.Stream()
    first.launch(reader)
    total = kw.zeros(1)
    kw.synchronize()
    address = made.ptr
    slow[1, 1, reader](made, total, 64, 100_000)
    del made
    with second.capture():
        other = one * 7
    assert other.ptr == address
    second.launch(kw.Stream())
    kw.synchronize()
    assert float(total[0]) == 100_000


def test_captured_functions_share_a_pool(reserved):
    pool = kw.GraphPool()

    def step(x):
        y = x + 1
        return (y * y).sum()

    arrays = [kw.full((8 - i) * (MiB // 8), float(i)) for i in range(8)]
    for x in arrays:
        step(x)
    start = reserved()
    shared = kw.captured(step, pool=pool)
    for _ in range(4):
        for i, x in enumerate(arrays):
            assert float(shared(x)) == (i + 1) ** 2 * x.size
    assert len(shared.graphs) == 8
    assert all(graph.pool == pool for graph in shared.graphs)
    assert reserved() - start <= 16 * MiB  # 36 MiB when each has its own


def test_wrong_uses():
    with pytest.raises(kw.ArgumentError, match="GraphPool or None, got int"):
        kw.Graph(pool=1)
    with pytest.raises(kw.ArgumentError, match="GraphPool or None, got str"):
        kw.captured(abs, pool="p")
    with pytest.raises(kw.ArgumentError, match="the class of calls as tasks: pass scheduler="):
        kw.captured(abs, qos="best_effort")
    pool = kw.GraphPool()
    assert pool.device == kw.current_device() and "GraphPool on" in repr(pool)
    x = kw.zeros(4)
    first, second = kw.Graph(pool=pool), kw.Graph(pool=pool)
    assert first.pool == second.pool == pool and len({first.pool, pool}) == 1
    assert first.pool != kw.GraphPool() and first.pool != 1
    with first.capture():
        y = x + 1
        with pytest.raises(kw.CaptureError, match="captures into the same pool; end that capture"):
            with second.capture(kw.Stream()):
                pass
    with pytest.raises(ZeroDivisionError), second.capture():
        _ = 1 / 0
    with second.capture():  # a discarded capture leaves the pool
        z = x + 2
    first.launch()
    second.launch()
    assert float(y[0]) == 1 and float(z[0]) == 2


def test_a_launch_that_would_wait_for_a_captured_stream_is_refused():
    pool = kw.GraphPool()
    x = kw.zeros(4)
    first, second = kw.Graph(pool=pool), kw.Graph(pool=pool)
    stream, other = kw.Stream(), kw.Stream()
    for graph in (first, second):
        with graph.capture(stream):
            x += 1
    first.launch(stream)
    with kw.Graph().capture(stream):
        with pytest.raises(kw.CaptureError, match="shares its memory with graph"):
            second.launch(other)
    second.launch(other)
    other.synchronize()
    assert float(x[0]) == 2


def test_a_pool_of_another_device():
    ended = run_child(
        """
        import kernwright as kw

        pool = kw.GraphPool(device="sim:1")
        try:
            kw.Graph(device="sim:0", pool=pool)
        except kw.InvalidArgument as error:
            print(error)
        print(kw.Graph(pool=pool).device == kw.Device("sim:1"))
        """,
        KERNWRIGHT_DEVICE="sim",
        KERNWRIGHT_SIM_DEVICES="2",
    )
    assert ended.code == 0, ended.err
    message, same = ended.out.splitlines()
    assert "cannot use a pool of" in message and same == "True"
