"""Learning rates over the steps of a run, computed on the device from its count of steps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._functions import not_negative

__all__ = ["Schedule", "constant", "cosine", "linear", "wsd"]


@dataclass(frozen=True)
class Schedule:
    """A learning rate for each step, counted from 1: up to `peak` in `warmup` steps, level until
    step `hold`, then down to `floor` at step `total`, where it stays.

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

    def __call__(self, step: int) -> float:
        """The rate of that step, in float64."""
        if step < self.warmup:
            return self.peak * (step / self.warmup)
        if self.shape == "constant" or step <= self.hold:
            return self.peak
        if step >= self.total:
            return self.floor
        part = (step - self.hold) / (self.total - self.hold)
        left = {
            "linear": 1 - part,
            "cosine": 0.5 * (1 + math.cos(math.pi * part)),
            "root": 1 - math.sqrt(part),
        }[self.shape]
        return self.floor + (self.peak - self.floor) * left

    def _words(self) -> tuple[float, float, int, int, int, str]:
        """As the kernel takes them."""
        return self.peak, self.floor, self.warmup, self.hold, self.total, self.shape

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
    """The same, and from there down in a line to `floor` at step `total`.

    >>> kw.optim.linear(1.0, 10, warmup=2)(6)
    0.5
    """
    return _decaying(peak, total, warmup, _count(warmup, "warmup"), floor, "linear")


def cosine(peak: float, total: int, *, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """The same along half a cosine.

    >>> round(kw.optim.cosine(1.0, 10, warmup=2, floor=0.1)(8), 4)
    0.2318
    """
    return _decaying(peak, total, warmup, _count(warmup, "warmup"), floor, "cosine")


def wsd(
    peak: float, total: int, *, decay: int, warmup: int = 0, floor: float = 0.0,
    shape: Literal["root", "linear", "cosine"] = "root",
) -> Schedule:  # fmt: skip
    """Warm up, stay, decay: level until the last `decay` steps. `shape` "root" falls as 1 - sqrt of
    the part of these steps (https://arxiv.org/abs/2405.18392).

    >>> schedule = kw.optim.wsd(1.0, 100, decay=16, warmup=10)
    >>> schedule(84), schedule(88)
    (1.0, 0.5)
    """
    if shape not in ("root", "linear", "cosine"):
        raise InvalidArgument(f'shape is "root", "linear" or "cosine", got {shape!r:.40}')
    hold = _count(total, "total") - _count(decay, "decay")
    return _decaying(peak, total, warmup, hold, floor, shape)


def _decaying(
    peak: float, total: int, warmup: int, hold: int, floor: float, shape: Any
) -> Schedule:
    rise, end = _count(warmup, "warmup"), _count(total, "total")
    highest, lowest = not_negative(peak, "peak"), not_negative(floor, "floor")
    if not rise <= hold < end:
        raise InvalidArgument(
            f"warmup and decay are shorter than the run, got {rise} and {end - hold} of {end} steps"
        )
    return Schedule(highest, lowest, rise, hold, end, shape)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name} is a number of steps, got {value!r:.60}")
    steps = int(value)
    if steps < 0:
        raise InvalidArgument(f"{name} is not negative, got {steps}")
    return steps
