"""Streams running beside each other, their priorities, and times between events."""

import statistics
import time

import pytest

import kernwright as kw

# Takes its time from the device's clock, so that it lasts as long at every clock rate. Its shared
# memory keeps a second block of it off a multiprocessor.
WAIT = r"""
extern __shared__ char room[];
__global__ void wait(long long nanoseconds, int* done) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while ((long long)(now - start) < nanoseconds);
    if (threadIdx.x == 0) atomicAdd(done, 1);
}
"""
ROUNDS = 5


@pytest.fixture
def gpu():
    with kw.Device("cuda") as device:
        yield device


@pytest.fixture
def wait(gpu):
    kernel = kw.kernel(WAIT)
    kernel.compile()
    room = gpu.attributes.max_shared_memory_per_block_optin * 3 // 4
    done = kw.zeros(1, "int32")

    def launch(stream, blocks, milliseconds):
        kernel[blocks, 32, stream, room](int(milliseconds * 1e6), done)

    launch(kw.Stream(), 1, 0.1)
    gpu.synchronize()
    return launch


def wall_ms(device, work):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        device.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def test_kernels_of_two_streams_overlap(gpu, wait):
    half = gpu.attributes.multiprocessor_count // 2
    first, second = kw.Stream(), kw.Stream()

    def one_after_the_other():
        wait(first, half, 10)
        wait(first, half, 10)

    def side_by_side():
        wait(first, half, 10)
        wait(second, half, 10)

    serial, parallel = wall_ms(gpu, one_after_the_other), wall_ms(gpu, side_by_side)
    assert serial >= 20
    assert parallel < 0.75 * serial


def test_events_measure_what_the_clock_does(gpu, wait):
    stream = kw.Stream()
    measured = []

    def work():
        start = stream.record()
        wait(stream, 1, 20)
        end = stream.record()
        end.synchronize()
        measured.append(end.elapsed_ms(start))

    wall = wall_ms(gpu, work)
    assert statistics.median(measured) == pytest.approx(wall, rel=0.05)
    assert statistics.median(measured) == pytest.approx(20, rel=0.05)


def small_ends_after(gpu, wait, priority):
    """How long after a full device's start a small kernel ends that is launched behind it; ms."""
    full, urgent = kw.Stream(priority=0), kw.Stream(priority=priority)
    begin = full.record()
    wait(full, 20 * gpu.attributes.multiprocessor_count, 1)
    end_of_full = full.record()
    wait(urgent, 1, 0.1)
    end = urgent.record()
    gpu.synchronize()
    return end.elapsed_ms(begin), end_of_full.elapsed_ms(begin)


def test_a_stream_of_higher_priority_goes_first(gpu, wait):
    urgent, whole = small_ends_after(gpu, wait, priority=-5)
    equal, _ = small_ends_after(gpu, wait, priority=0)
    assert whole >= 20
    assert urgent < 0.3 * whole  # it takes the first free place
    assert equal > 2 * urgent  # without it, it waits until all blocks of the other have begun
