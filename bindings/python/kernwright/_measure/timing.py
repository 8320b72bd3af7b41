"""time(): the time of the device for the work that a callable queues, measured with care."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from kernwright import _core
from kernwright._measure.simulated import REMARK
from kernwright._support import html as _html
from kernwright._support.words import counted, time_text
from kernwright.errors import ArgumentError, InvalidArgument

# While the device is busy with this much more than a launch costs the host, the launch and both
# events are queued in time: what lies between the events is the device's work alone.
_HEADROOM = 3.0
_MOST_FLUSHES = 64


@dataclass(frozen=True)
class Timing:
    """Times of single runs in milliseconds, in the order of measuring.

    `cold`: the L2 cache was overwritten before each run. `is_simulated`: the times are those of
    this machine's CPU, which simulated a GPU.
    """

    samples: tuple[float, ...]
    cold: bool
    is_simulated: bool = False

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)

    @property
    def mean(self) -> float:
        """The mean of all samples."""
        return statistics.fmean(self.samples)

    @property
    def best(self) -> float:
        """The least sample."""
        return min(self.samples)

    @property
    def interval(self) -> tuple[float, float]:
        """Two samples that enclose the true median with a probability of 95 % or more; of fewer
        than six samples the least and the greatest."""
        ordered = sorted(self.samples)
        skipped = _skipped(len(ordered))
        return ordered[skipped], ordered[-1 - skipped]

    @property
    def noise(self) -> float:
        """Standard deviation as a part of the mean; 0 for a single sample."""
        if len(self.samples) < 2 or self.mean == 0:
            return 0.0
        return statistics.stdev(self.samples) / self.mean

    def quantile(self, part: float) -> float:
        """The sample below which `part` of all samples lie, 0 ... 1."""
        if not 0 <= part <= 1:
            raise InvalidArgument(f"a quantile of {part}: it must be between 0 and 1")
        ordered = sorted(self.samples)
        return ordered[round(part * (len(ordered) - 1))]

    def __repr__(self) -> str:
        kind = "cold" if self.cold else "warm"
        low, high = self.interval
        text = (
            f"<Timing: median {self.median:.6g} ms ({low:.6g} to {high:.6g}), best "
            f"{self.best:.6g} ms, noise {100 * self.noise:.2g} %, "
            f"{counted(len(self.samples), kind + ' sample')}"
        )
        return f"{text}; {REMARK}>" if self.is_simulated else f"{text}>"

    def _repr_html_(self) -> str:
        rows = {
            "median": time_text(self.median),
            "interval": " to ".join(map(time_text, self.interval)),
            "best": time_text(self.best),
            "mean": time_text(self.mean),
            "noise": f"{100 * self.noise:.2g} %",
            "samples": f"{len(self.samples)}, {'cold' if self.cold else 'warm'}",
        }
        return _html.box(f"Timing ({REMARK})" if self.is_simulated else "Timing", rows)


def _skipped(count: int) -> int:
    """How many of `count` ordered samples lie outside of the 95 % interval at each of its ends."""
    if count > 1000:  # where a normal distribution is near enough
        return int((count - 1.96 * math.sqrt(count)) / 2)
    skipped, tail = 0, 0.0
    for rank in range((count + 1) // 2):
        tail += math.comb(count, rank) * 0.5**count
        if tail > 0.025:
            break
        skipped = rank
    return skipped


def time(
    f: Callable[..., object],
    /,
    *args: Any,
    device: Any = None,
    stream: Any = None,
    cold: bool = True,
    warmup: int = 3,
    min_samples: int = 10,
    max_samples: int = 1000,
    max_seconds: float = 1.0,
    noise: float = 0.005,
) -> Timing:
    """Times the work that `f(*args)` queues on the current stream, which is `stream` or a new one.

    `f` is a kernel with its launch configuration, a function of this package, or any callable that
    queues work of the device. It runs many times, so it should leave its inputs as they are. What
    it raises is raised. Wrap a call with keywords in a lambda.

    The result is a Timing: `median`, `interval` (95 % of the median), `best`, `mean`, `noise` and
    all `samples`, in milliseconds. Compiles happen in the first `warmup` runs, which do not count.

    Each sample lies between two events. Before it the L2 cache is overwritten, or with
    ``cold=False`` `f` runs once more untimed; either keeps the device busy until the launch and
    both events are queued, so that the time of the host is not in the sample. If `f` waits for the
    device, or copies to the host, the time of the host is in it. Sampling ends when the standard
    error of the mean is below the part `noise` of it, after `max_samples`, or after `max_seconds`.

    >>> x = kw.zeros(64)
    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }")
    >>> timing = kw.time(fill[1, 64], x, max_samples=10)
    >>> timing.interval[0] <= timing.median <= timing.interval[1]
    True
    >>> kw.time(kw.nn.softmax, x, max_samples=10).median > 0
    True
    """
    if not callable(f):
        raise ArgumentError(f"time(f, *args) wants a callable, got {type(f).__name__}")
    if warmup < 1 or min_samples < 1 or max_samples < min_samples:
        raise InvalidArgument(
            f"warmup={warmup}, min_samples={min_samples}, max_samples={max_samples}: all at least "
            "1, and max_samples not below min_samples"
        )
    if not max_seconds > 0 or not noise >= 0:
        raise InvalidArgument(
            f"max_seconds={max_seconds} must be above 0, noise={noise} at least 0"
        )
    own = stream is None
    chosen = _core.Stream(device=device) if own else _core.Stream.borrow(stream, device)
    with chosen:
        sampler = _Sampler((lambda: f(*args)) if args else f, chosen, cold)
        return _sample(sampler, warmup, min_samples, max_samples, max_seconds, noise)


def time_kernel(run: Callable[[], object], **settings: Any) -> Timing:
    """The same as ``kw.time(run, **settings)``, for a callable without arguments.

    >>> x = kw.zeros(64)
    >>> kw.time_kernel(lambda: x.fill(1), max_samples=10).median > 0
    True
    """
    return time(run, **settings)


class _Sampler:
    def __init__(self, run: Callable[[], object], stream: _core.Stream, cold: bool) -> None:
        self.run = run
        self.cold = cold
        self._stream = stream
        self._events = (_core.Event(device=stream.device), _core.Event(device=stream.device))
        self._flushes = 1
        size = stream.device.attributes["l2_cache_size"] if cold else 0
        self._cache = _core.empty(max(size, 1), "uint8", device=stream.device) if cold else None

    def _occupy(self) -> None:
        for _ in range(self._flushes):
            if self._cache is not None:
                self._cache._fill(0)
            else:
                self.run()

    def _between_events(self, work: Callable[[], object]) -> tuple[float, float]:
        """Milliseconds of the device, and seconds of the host to queue it."""
        start, end = self._events
        begin = perf_counter()
        start.record(self._stream)
        work()
        end.record(self._stream)
        queued = perf_counter() - begin
        end.synchronize()
        return float(end.elapsed_ms(start)), queued

    def prepare(self, warmup: int) -> None:
        queued = min(self._between_events(self.run)[1] for _ in range(warmup))
        busy, _ = min(self._between_events(self._occupy) for _ in range(2))
        if busy > 0:
            wanted = _HEADROOM * queued * 1000 / busy
            self._flushes = max(1, min(_MOST_FLUSHES, round(wanted + 0.5)))

    def sample(self) -> float:
        self._occupy()
        return self._between_events(self.run)[0]

    def timing(self, samples: list[float]) -> Timing:
        return Timing(tuple(samples), self.cold, self._stream.device.is_simulated)


def _sample(
    sampler: _Sampler,
    warmup: int,
    min_samples: int,
    max_samples: int,
    max_seconds: float,
    noise: float,
) -> Timing:
    sampler.prepare(warmup)
    samples: list[float] = []
    deadline = perf_counter() + max_seconds
    while len(samples) < max_samples:
        samples.append(sampler.sample())
        if len(samples) < min_samples:
            continue
        timing = sampler.timing(samples)
        if len(samples) > 1 and timing.noise / len(samples) ** 0.5 <= noise:
            break
        if perf_counter() >= deadline:
            break
    return sampler.timing(samples)
