"""Streams, events and launch attributes: order, waiting, limits, and other libraries' handles."""

import threading
import time

import numpy as np
import pytest

import kernwright as kw

SPIN = r"""
__global__ void spin(int* x, int rounds) {
    int sum = threadIdx.x;
    for (int i = 0; i < rounds; i++) sum = sum * 1664525 + 1013904223;
    if (threadIdx.x == 0) x[0] += sum | 1;
}
__global__ void add(float* x, float v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += v;
}
extern __shared__ float room[];
__global__ void last(float* out, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) room[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = room[count - 1];
}
"""


@pytest.fixture(scope="module")
def kernels():
    return kw.module(SPIN)


def test_streams_are_ordered_by_events(kernels):
    first, second = kw.Stream(), kw.Stream(priority=-1)
    x = kw.zeros(256)
    for _ in range(20):
        kernels["add"][1, 256, first](x, 1.0, 256)
        second.wait(first.record(kw.Event(timing=False)))
        kernels["add"][1, 256, second](x, 1.0, 256)
        first.wait(second)
    first.synchronize()
    assert (x.numpy() == 40).all()


def test_the_per_thread_stream_is_another_one_in_each_thread(kernels):
    x, y = kw.zeros(256), kw.zeros(256)
    mine = kw.Stream.per_thread()
    assert mine.handle == 2
    kernels["add"][1, 256, mine](x, 1.0, 256)

    def work():
        own = kw.Stream.per_thread()
        kernels["add"][1, 256, own](y, 1.0, 256)
        own.synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    mine.synchronize(timeout=60)
    assert (x.numpy() + y.numpy() == 2).all()


def test_borrowed_handles_are_the_same_stream(kernels):
    class Other:
        def __init__(self, handle):
            self.handle = handle

        def __cuda_stream__(self):
            return 0, self.handle

    own = kw.Stream()
    x = kw.zeros(256)
    for handle in (own, own.handle, Other(own.handle)):
        kernels["add"][1, 256, handle](x, 1.0, 256)
        borrowed = kw.Stream.borrow(handle)
        assert borrowed == own
        with borrowed:
            kernels["add"][1, 256](x, 1.0, 256)
        event = borrowed.record()
        own.wait(event)
        own.wait(Other(own.handle))
    own.synchronize()
    assert (x.numpy() == 6).all()
    assert kw.Stream.borrow(Other(1)).handle == 0
    with pytest.raises(kw.ArgumentError, match="Event or a stream"):
        own.wait(None)
    with pytest.raises(kw.ArgumentError, match=r"kw\.Event"):
        own.record(own)


def test_synchronize_gives_up_in_time(kernels):
    stream = kw.Stream()
    x = kw.zeros(1, np.int32)
    kernels["spin"][1, 32, stream](x, 300_000 if stream.device.is_simulated else 200_000_000)
    begin = time.perf_counter()
    try:
        stream.synchronize(timeout=0.005)
    except kw.Timeout as error:
        assert "not done after 0.005 s" in str(error)
        assert time.perf_counter() - begin < 60
    stream.synchronize(timeout=300)  # patience is rewarded, the stream goes on
    assert stream.done
    kernels["spin"][1, 32, stream](x, 10)
    stream.device.synchronize(timeout=300)
    for wrong in (-1, float("nan")):
        with pytest.raises(kw.InvalidArgument, match="timeout"):
            stream.synchronize(timeout=wrong)
    stream.synchronize(timeout=float("inf"))


def test_events_tell_time(kernels):
    stream = kw.Stream()
    x = kw.zeros(1, np.int32)
    start, end = kw.Event(), kw.Event()
    start.record(stream)
    kernels["spin"][1, 32, stream](x, 1000)
    end.record(stream)
    end.synchronize()
    assert end.done and start.timing
    assert end.elapsed_ms(start) >= 0
    plain = kw.Event(timing=False)
    plain.record(stream)
    plain.synchronize()
    assert not plain.timing
    with pytest.raises(kw.InvalidArgument, match="with timing"):
        plain.elapsed_ms(start)
    with pytest.raises(kw.DriverError):
        kw.Event().elapsed_ms(start)


def test_priorities_are_those_of_the_device_by_number_or_by_name(kernels, device):
    least, highest = device.priority_range
    assert highest <= kw.Stream().priority <= least
    assert kw.Stream(priority="high").priority == kw.Stream(highest).priority == highest
    assert kw.Stream(priority="low").priority == kw.Stream(least).priority == least
    assert highest <= kw.Stream(priority="medium").priority <= least
    for wrong in (highest - 1, least + 1, -(2**31), 2**31 - 1):
        with pytest.raises(kw.InvalidArgument, match=f"between {highest} .*{least} .*by name"):
            kw.Stream(priority=wrong)
    with pytest.raises(kw.InvalidArgument, match="'urgent': high, medium or low"):
        kw.Stream(priority="urgent")
    with pytest.raises(kw.ArgumentRangeError, match="out of range"):
        kw.Stream(priority=2**70)
    for wrong in (1.5, None, True):
        with pytest.raises(kw.ArgumentError, match="a priority is an integer"):
            kw.Stream(priority=wrong)
    x = kw.zeros(256)
    config = kw.LaunchConfig(1, 256, priority=highest)
    kernels["add"].launch(config, x, 1.0, 256)
    for wrong in (highest - 1, 1):
        with pytest.raises(kw.LaunchConfigError, match=f"priority of {wrong}: between {highest}"):
            kernels["add"].launch(kw.LaunchConfig(1, 256, priority=wrong), x, 1.0, 256)
    assert (x.numpy() == 1).all()


def test_dynamic_shared_memory_above_48_kb(kernels, device):
    most = device.attributes["max_shared_memory_per_block_optin"]
    out = kw.zeros(1)
    for kilobytes in (1, 48, 49, 100, 200):
        size = kilobytes << 10
        if size > most:
            with pytest.raises(kw.LaunchConfigError, match=f"at most {most} bytes"):
                kernels["last"][1, 64, None, size](out, size // 4)
            continue
        kernels["last"][1, 64, None, size](out, size // 4)
        assert out.numpy()[0] == size // 4 - 1
    with pytest.raises(kw.LaunchConfigError, match=f"{most + 4} bytes .*at most {most}"):
        kernels["last"][1, 64, None, most + 4](out, 1)
    for wrong in (-1, 2**32):
        with pytest.raises(kw.LaunchConfigError, match="shared_bytes"):
            kernels["last"][1, 64, None, wrong](out, 1)


def test_cooperative_grids_must_fit(kernels, device):
    add, x = kernels["add"], kw.zeros(256)
    resident = add.occupancy(256) * device.attributes["multiprocessor_count"]
    add.launch(kw.LaunchConfig(resident, 256, cooperative=True), x, 1.0, 256)
    with pytest.raises(kw.LaunchConfigError, match=f"at most {resident} blocks"):
        add.launch(kw.LaunchConfig(resident + 1, 256, cooperative=True), x, 1.0, 256)
    assert (x.numpy() == 1).all()


def test_clusters_up_to_the_largest(kernels, device):
    add, x = kernels["add"], kw.zeros(256)
    largest = add.max_cluster(256)
    if largest == 0:  # below compute capability 9.0
        with pytest.raises(kw.LaunchConfigError, match="clusters are not supported"):
            add.launch(kw.LaunchConfig(4, 256, cluster=2), x, 1.0, 256)
        assert add.active_clusters(kw.LaunchConfig(4, 256)) == 0
        return
    for size in {1, 2, largest}:
        config = kw.LaunchConfig(size, 256, cluster=size)
        assert add.active_clusters(config) > 0
        add.launch(config, x, 1.0, 256)
    with pytest.raises(kw.LaunchConfigError, match=f"at most {max(largest, 16)}"):
        add.launch(kw.LaunchConfig(32, 256, cluster=32), x, 1.0, 256)


def test_programmatic_launches_and_their_events(kernels, device):
    add, x = kernels["add"], kw.zeros(256)
    marker = kw.Event(timing=False)
    with pytest.raises(kw.LaunchConfigError, match="must be made without"):
        add.launch(kw.LaunchConfig(1, 256, launch_completion_event=kw.Event()), x, 1.0, 256)
    config = kw.LaunchConfig(1, 256, programmatic_dependent=True, programmatic_event=marker)
    assert config.programmatic_event is not None and not config.programmatic_event_at_start
    if device.compute_capability < (9, 0):
        with pytest.raises(kw.LaunchConfigError, match="newer support it"):
            add.launch(config, x, 1.0, 256)
        with pytest.raises(kw.LaunchConfigError, match="newer support it"):
            add.launch(kw.LaunchConfig(1, 256, programmatic_event=marker), x, 1.0, 256)
        return
    stream = kw.Stream()
    with stream:
        add.launch(config, x, 1.0, 256)
        add.launch(kw.LaunchConfig(1, 256, launch_completion_event=marker), x, 1.0, 256)
    marker.synchronize()
    stream.synchronize()
    assert (x.numpy() == 2).all()
