"""time(): samples, when it stops, and misuse."""

import numpy as np
import pytest

import kernwright as kw
from kernwright._measure.timing import Timing, _sample

SOURCE = r"""
__global__ void spin(int* x, int rounds) {
    int sum = threadIdx.x;
    for (int i = 0; i < rounds; i++) sum = sum * 1664525 + 1013904223;
    x[threadIdx.x] = sum;
}
"""


@pytest.fixture(scope="module")
def spin():
    return kw.kernel(SOURCE)


@pytest.mark.parametrize("cold", [True, False])
def test_longer_work_takes_longer(spin, cold):
    x = kw.zeros(32, np.int32)
    short, long = (
        kw.time_kernel(
            lambda rounds=rounds: spin[1, 32](x, rounds),
            cold=cold,
            max_samples=5,
            min_samples=5,
        )
        for rounds in (100, 200_000)
    )
    assert len(short.samples) == 5 and short.cold is cold
    assert 0 < short.best <= short.median < long.median
    assert "5 " + ("cold" if cold else "warm") in repr(short)


def test_the_callable_runs_on_the_stream_given(spin):
    stream, x, seen = kw.Stream(), kw.zeros(32, np.int32), []

    def run():
        seen.append(kw.current_stream())
        spin[1, 32](x, 10)

    kw.time_kernel(run, stream=stream, warmup=2, min_samples=2, max_samples=2)
    assert set(seen) == {stream} and len(seen) == 4
    assert kw.current_stream() != stream


def test_it_stops_when_the_mean_is_known_or_time_is_up(spin):
    x = kw.zeros(32, np.int32)
    easy = kw.time_kernel(lambda: spin[1, 32](x, 100), noise=1e9, min_samples=4)
    assert len(easy.samples) == 4
    late = kw.time_kernel(lambda: spin[1, 32](x, 100), noise=0, max_seconds=1e-9, min_samples=3)
    assert len(late.samples) == 3


def test_statistics():
    timing = Timing((4.0, 1.0, 2.0, 3.0, 10.0), cold=True)
    assert (timing.median, timing.mean, timing.best) == (3, 4, 1)
    assert [timing.quantile(part) for part in (0, 0.25, 0.5, 1)] == [1, 2, 3, 10]
    assert timing.noise == pytest.approx(np.std(timing.samples, ddof=1) / 4)
    assert Timing((1.0,), cold=True).noise == 0
    with pytest.raises(kw.InvalidArgument, match="between 0 and 1"):
        timing.quantile(1.5)


def test_misuse(spin):
    with pytest.raises(kw.ArgumentError, match="callable"):
        kw.time_kernel(spin[1, 32](kw.zeros(32, np.int32), 1))
    for wrong in (
        {"warmup": 0},
        {"min_samples": 0},
        {"min_samples": 5, "max_samples": 4},
        {"max_seconds": 0},
        {"noise": -1},
        {"noise": float("nan")},
    ):
        with pytest.raises(kw.InvalidArgument):
            kw.time_kernel(lambda: None, **wrong)
    with pytest.raises(ZeroDivisionError):
        kw.time_kernel(lambda: 1 / 0)
    with pytest.raises(kw.CaptureError), kw.Graph().capture() as stream:
        kw.time_kernel(lambda: None, stream=stream)


def test_time_takes_a_callable_and_its_arguments(spin, sim):
    x = kw.zeros(32, np.int32)
    settings = {"min_samples": 6, "max_samples": 6, "warmup": 1}
    bound = kw.time(spin[1, 32], x, 1000, **settings)
    assert len(bound.samples) == 6 and bound.cold
    seen = []
    assert kw.time(lambda *a: seen.append(a), 1, "two", **settings).median >= 0
    assert set(seen) == {(1, "two")} and len(seen) == 7
    assert kw.time(kw.exp, kw.ones(5), cold=False, **settings).cold is False
    assert bound.is_simulated and "simulated" in repr(bound) and "simulated" in bound._repr_html_()
    assert "simulated" not in repr(Timing((1.0,), cold=True))
    for wrong in (None, 3, spin):
        with pytest.raises(kw.Error):
            kw.time(wrong)
    with pytest.raises(TypeError, match="max_sample"):
        kw.time(spin[1, 32], x, 1000, max_sample=3)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 10, 37, 100, 1000, 1001, 5000])
def test_the_interval_holds_the_median_95_times_of_100(count):
    samples = tuple(float(i) for i in range(count))
    low, high = Timing(samples[::-1], cold=True).interval
    assert low + high == count - 1  # as many outside on either side
    if count < 6:
        assert (low, high) == (0, count - 1)
        return
    rng = np.random.default_rng(count)
    draws = np.sort(rng.random((2000, count)), axis=1)
    inside = (draws[:, int(low)] <= 0.5) & (draws[:, int(high)] >= 0.5)
    assert inside.mean() > 0.93
    tighter = (draws[:, int(low) + 2] <= 0.5) & (draws[:, int(high) - 2] >= 0.5)
    assert count < 10 or tighter.mean() < inside.mean()


class AlternatingSampler:
    """Samples of 1 and 1.1 in turns: their standard deviation is 5 % of their mean."""

    def __init__(self):
        self.count = 0

    def prepare(self, warmup):
        assert warmup == 3

    def sample(self):
        self.count += 1
        return 1.0 + 0.1 * (self.count % 2)

    def timing(self, samples):
        return Timing(tuple(samples), cold=False)


@pytest.mark.parametrize(("noise", "count"), [(0.02, 7), (0.01, 24), (0.0, 50), (1.0, 2)])
def test_samples_are_taken_until_the_error_of_their_mean_is_small(noise, count):
    """The standard error, noise / sqrt(samples), not the noise of a sample."""
    found = _sample(AlternatingSampler(), 3, 2, 50, 1e6, noise)
    assert abs(len(found.samples) - count) <= 1
