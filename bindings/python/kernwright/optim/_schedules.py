"""Learning rates over the steps of a run, computed on the device from its count of steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._functions import not_negative

__all__ = ["Schedule", "constant", "cosine", "linear", "wsd"]


# What is left of the way from peak to floor, by the part of the decay that is over.
_DECAYS: dict[str, Callable[[float], float]] = {
    "linear": lambda part: 1 - part,
    "cosine": lambda part: 0.5 * (1 + math.cos(math.pi * part)),
    "root": lambda part: 1 - math.sqrt(part),
}


@dataclass(frozen=True)
class Schedule:
    """A learning rate for each step, counted from 1: up to `peak` in `warmup` steps, level until
    step `hold`, then down to `floor` at step `total`, where it stays. Raises InvalidArgument for
    steps in another order, and for a floor above the peak.

    Pass one as `lr` of an optimiser: a kernel computes the rate from the count of steps on the
    device, so that a graph follows it. Called with a step, it gives the rate as a number. Make one
    with constant(), linear(), cosine() or wsd().

    >>> [kw.optim.cosine(1.0, 8, warmup=2)(step) for step in (1, 2, 5, 8, 99)]
    [0.5, 1.0, 0.5, 0.0, 0.0]
    """

    peak: float
    floor: float
    warmup: int
    hold: int
    total: int
    shape: Literal["constant", "linear", "cosine", "root"]

    def __post_init__(self) -> None:
        highest, lowest = not_negative(self.peak, "peak"), not_negative(self.floor, "floor")
        if lowest > highest:
            raise InvalidArgument(f"floor is at most peak, got floor={lowest} and peak={highest}")
        if self.shape not in (*_DECAYS, "constant"):
            known = ", ".join(("constant", *_DECAYS))
            raise InvalidArgument(f"shape is one of {known}, got {self.shape!r:.40}")
        rise, hold, end = (_count(getattr(self, n), n) for n in ("warmup", "hold", "total"))
        if not rise <= hold <= end or (hold == end and self.shape != "constant"):
            raise InvalidArgument(
                "steps are in the order warmup <= hold < total, got "
                f"warmup={rise}, hold={hold} and total={end}"
            )

    def __call__(self, step: int) -> float:
        """The rate of that step, in float64. Raises InvalidArgument for a step below 0."""
        if step < 0:
            raise InvalidArgument(f"a step is counted from 1, got {step!r:.40}")
        if step < self.warmup:
            return self.peak * (step / self.warmup)
        if self.shape == "constant" or step <= self.hold:
            return self.peak
        if step >= self.total:
            return self.floor
        left = _DECAYS[self.shape]((step - self.hold) / (self.total - self.hold))
        return self.floor + (self.peak - self.floor) * left

    def _words(self) -> tuple[float, ...]:
        """As the kernel takes them."""
        shape = ("constant", *_DECAYS).index(self.shape) + 1
        steps = (float(self.warmup), float(self.hold), float(self.total))
        return float(self.peak), float(self.floor), *steps, float(shape)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


def constant(peak: float, *, warmup: int = 0) -> Schedule:
    """A learning rate that rises in a line to `peak` in `warmup` steps and stays there.

    >>> kw.optim.constant(0.5, warmup=4)(1)
    0.125
    """
    rise = _count(warmup, "warmup")
    return Schedule(not_negative(peak, "peak"), 0.0, rise, rise, rise, "constant")


def linear(peak: float, total: int, *, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """The same, and from there down in a line to `floor` at step `total`. Raises InvalidArgument
    for a warm-up that is not shorter than `total`, and for a floor above the peak.

    >>> kw.optim.linear(1.0, 10, warmup=2)(6)
    0.5
    """
    return _falling(peak, total, warmup, floor, "linear")


def cosine(peak: float, total: int, *, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """linear() along half a cosine in place of a line.

    >>> round(kw.optim.cosine(1.0, 10, warmup=2, floor=0.1)(8), 4)
    0.2318
    """
    return _falling(peak, total, warmup, floor, "cosine")


def wsd(
    peak: float, total: int, *, decay: int, warmup: int = 0, floor: float = 0.0,
    shape: Literal["root", "linear", "cosine"] = "root",
) -> Schedule:  # fmt: skip
    """Warm up, stay, decay: level until the last `decay` steps. `shape` "root" falls as 1 - sqrt of
    the part of these steps (https://arxiv.org/abs/2405.18392). Raises InvalidArgument where warm-up
    and decay do not fit into `total`, and for a floor above the peak.

    >>> schedule = kw.optim.wsd(1.0, 100, decay=16, warmup=10)
    >>> schedule(84), schedule(88)
    (1.0, 0.5)
    """
    if shape not in _DECAYS:
        raise InvalidArgument(f'shape is "root", "linear" or "cosine", got {shape!r:.40}')
    rise, fall, end = _count(warmup, "warmup"), _count(decay, "decay"), _count(total, "total")
    if fall < 1 or rise + fall > end:
        raise InvalidArgument(
            f"warmup and decay, 1 step at least, fit into total: got warmup={rise}, decay={fall} "
            f"and total={end}"
        )
    return _decaying(peak, end, rise, end - fall, floor, shape)


def _falling(peak: float, total: int, warmup: int, floor: float, shape: Any) -> Schedule:
    """A schedule that falls from the end of the warm-up on."""
    rise, end = _count(warmup, "warmup"), _count(total, "total")
    if rise >= end:
        raise InvalidArgument(f"warmup is shorter than total, got warmup={rise} and total={end}")
    return _decaying(peak, end, rise, rise, floor, shape)


def _decaying(
    peak: float, total: int, warmup: int, hold: int, floor: float, shape: Any
) -> Schedule:
    highest, lowest = not_negative(peak, "peak"), not_negative(floor, "floor")
    return Schedule(highest, lowest, warmup, hold, total, shape)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name} is a number of steps, got {value!r:.60}")
    steps = int(value)
    if steps < 0:
        raise InvalidArgument(f"{name} is not negative, got {steps}")
    return steps
