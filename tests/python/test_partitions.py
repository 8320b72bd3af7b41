"""Partitions: sizes, where kernels run, graphs, captures, limits, lives and wrong calls."""

import gc

import numpy as np
import pytest

import kernwright as kw

WHERE = r"""
extern "C" __global__ void where(int* seen) {
    unsigned place;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place));
    if (threadIdx.x == 0) seen[blockIdx.x] = place;
}"""
BLOCKS = 600


@pytest.fixture(scope="module")
def where():
    return kw.kernel(WHERE)


@pytest.fixture
def rules(device):
    gc.collect()
    # Memory that was freed on a partition's stream keeps the partition until the work there ended.
    kw.memory.trim(device, keep=1 << 40)
    rules = device.partition_rules
    assert rules.supported
    assert rules.free == rules.multiprocessors == device.attributes["multiprocessor_count"]
    return rules


@pytest.fixture
def two(device, rules):
    return device.partitions([rules.minimum, None])


def places(run, stream):
    seen = kw.full(BLOCKS, -1, "i4")
    kw.synchronize()
    run(seen)
    stream.synchronize()
    return set(seen.numpy().tolist())


def launched(kernel, stream):
    return places(lambda seen: kernel[BLOCKS, 32, stream](seen), stream)


def test_memory_of_a_pool_keeps_no_partition_when_the_work_there_has_ended(device, rules):
    with kw.memory.use(kw.memory.PoolResource(device=device)):
        stream = device.partitions([rules.minimum])[0].stream()
        with stream:
            kw.ones(1000)
        stream.synchronize()
        del stream
        gc.collect()
        assert device.partition_rules.free == rules.free


def test_sizes_asked_and_given_are_told(device, rules):
    unit = rules.minimum
    parts = device.partitions([1, unit + 1, None])
    assert [part.asked for part in parts] == [1, unit + 1, None]
    assert [part.sms for part in parts] == [unit, 2 * unit, rules.multiprocessors - 3 * unit]
    assert rules.minimum % rules.alignment == 0
    assert device.partition_rules.free == 0
    assert f"({2 * unit} multiprocessors) of" in repr(parts[1])
    assert len({part.id for part in parts}) == 3
    assert parts[0].device == device


def test_partitions_are_disjoint_and_inside_the_device(device, rules):
    third = rules.multiprocessors // 4
    parts = device.partitions([rules.minimum, third, None])
    seen = [set(part.smids()) for part in parts]
    assert sum(len(each) for each in seen) == len(set().union(*seen))
    for part, each in zip(parts, seen, strict=True):
        assert 0 < len(each) <= part.sms
        if device.is_simulated:
            assert len(each) == part.sms


def test_kernels_of_its_streams_run_inside_and_others_everywhere(where, two):
    inside = set(two[0].smids())
    assert launched(where, two[0].stream()) <= inside
    assert launched(where, two[0].stream("high")) <= inside
    assert not launched(where, kw.Stream()) <= inside
    with two[0].stream() as stream:  # a current stream; code that was loaded before runs there
        assert launched(where, stream) <= inside
        assert kw.current_stream().partition == two[0]
    assert kw.current_stream().partition is None


def test_the_library_computes_the_same_inside(two):
    a = np.random.default_rng(5).standard_normal((96, 80)).astype(np.float32)
    x = kw.asarray(a)
    kw.synchronize()
    expected = (x @ x.T).numpy(), kw.softmax(x).numpy() if hasattr(kw, "softmax") else None
    with two[0].stream():
        inside = (x @ x.T).numpy()
    assert np.array_equal(inside, expected[0])
    assert np.allclose(inside, a @ a.T, rtol=1e-4, atol=1e-4)


def test_a_graph_runs_where_it_was_captured(where, two):
    first, second = (set(part.smids()) for part in two)
    seen = kw.full(BLOCKS, -1, "i4")
    kw.synchronize()
    captured = two[0].stream()
    graph = kw.Graph()
    before = kw.current_stream()
    with graph.capture(captured):
        where[BLOCKS, 32](seen)
    assert kw.current_stream() == before

    def replay(stream):
        return places(lambda seen: (graph.update(node, seen), graph.launch(stream)), stream)

    (node,) = graph.nodes
    for stream in (captured, two[1].stream(), kw.Stream()):
        assert replay(stream) <= first
    other = two[1].stream()
    with graph.capture(other):
        where[BLOCKS, 32](seen)
    (node,) = graph.nodes
    assert replay(captured) <= second


def test_streams_and_graphs_keep_a_partition(device, where, rules):
    (part,) = device.partitions([rules.minimum])
    stream = part.stream()
    seen = kw.full(BLOCKS, -1, "i4")
    kw.synchronize()
    graph = kw.Graph()
    with graph.capture(stream):
        where[BLOCKS, 32](seen)
    inside = set(part.smids())
    del part
    assert device.partition_rules.free == rules.multiprocessors - rules.minimum
    assert stream.partition.sms == stream.multiprocessors == rules.minimum
    del stream
    gc.collect()
    assert device.partition_rules.free == rules.multiprocessors - rules.minimum
    last = kw.Stream()
    graph.launch(last)
    last.synchronize()
    assert set(seen.numpy().tolist()) <= inside
    del graph
    gc.collect()
    assert device.partition_rules.free == rules.multiprocessors


def test_too_much_raises_before_anything_is_made(device, rules):
    total = rules.multiprocessors
    half = total // 2 + rules.minimum
    for sizes in ([total + 1], [half, half], [total, None], [rules.minimum] * total):
        with pytest.raises(kw.PartitionError, match=f"multiples of {rules.alignment}") as caught:
            device.partitions(sizes)
        assert caught.value.free == total
        assert caught.value.minimum == rules.minimum
        assert caught.value.needed > total or None in sizes
    assert device.partition_rules.free == total
    kept = device.partitions([None])
    with pytest.raises(kw.PartitionError, match="has 0 free"):
        device.partitions([1])
    assert kept[0].sms == total


def test_limits_are_told_and_streams_are_limited(device, rules):
    parts = device.partitions([1, 1], memory=[1 << 20, None], share=0.25, streams=[1, None])
    assert [part.memory for part in parts] == [1 << 20, None]
    assert [part.share for part in parts] == [0.25, 0.25]
    assert [part.streams for part in parts] == [1, None]
    stream = parts[0].stream()
    assert parts[0].live_streams == 1
    with pytest.raises(kw.PartitionError, match="at most 1 were asked for"):
        parts[0].stream()
    del stream
    gc.collect()
    assert parts[0].live_streams == 0
    parts[0].stream().synchronize()


def test_wrong_calls_are_told(device, rules):
    for sizes in ([], [-8], [0], [None, None], [2**40]):
        with pytest.raises(kw.InvalidArgument):
            device.partitions(sizes)
    for sizes in (8, ["8"], [8.0], [True], None):
        with pytest.raises(kw.ArgumentError):
            device.partitions(sizes)
    for wrong in ({"share": 0.0}, {"share": 1.5}, {"share": float("nan")}, {"memory": -1},
                  {"streams": -1}, {"memory": [1, 2]}):  # fmt: skip
        with pytest.raises(kw.InvalidArgument):
            device.partitions([8], **wrong)
    with pytest.raises(kw.ArgumentError):
        kw.Partition()
    (part,) = device.partitions([8])
    with pytest.raises(kw.InvalidArgument, match="between"):
        part.stream(-1000)


def test_a_cooperative_grid_must_fit_the_partition(where, two):
    part, stream = two[0], two[0].stream()
    seen = kw.full(4096, -1, "i4")
    fitting = where.occupancy(32) * part.sms
    kw.synchronize()
    where.launch(kw.LaunchConfig(min(fitting, 4096), 32, stream=stream, cooperative=True), seen)
    with pytest.raises(kw.LaunchConfigError, match=f"{part.sms} multiprocessors"):
        where.launch(kw.LaunchConfig(fitting + 1, 32, stream=stream, cooperative=True), seen)
    stream.synchronize()


def test_memory_freed_in_one_partition_is_not_reused_early_in_another(two):
    """Temporaries of one stream's partition, freed while its work is queued, go to the other's."""
    first, second = two[0].stream(), two[1].stream()
    results = []
    for _ in range(20):
        with first:
            a = kw.full(5000, 1.0)
            results.append((1.0 * 2 + 1, a * 2 + 1))
            del a
        with second:
            b = kw.full(5000, 10.0)
            results.append((10.0 * 2 + 1, b * 2 + 1))
            del b
    kw.synchronize()
    for expected, array in results:
        assert (array.numpy() == expected).all()
