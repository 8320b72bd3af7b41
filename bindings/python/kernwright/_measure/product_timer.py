"""Times of a product's plans."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._measure.replay import Replay
from kernwright._measure.timing import time_kernel

# Milliseconds below which the events around a single launch, and lines of the L2 that a flush left
# to be written back, are much of what is measured.
_SHORT = 0.05
# All copies of the operands have so many times the bytes of the L2.
_TIMES_L2 = 4
_LAUNCHES = 24
_REPLAYS, _SETTLED = 5, 1


class TimedProduct(NamedTuple):
    """A product: the name of its kind in tables, and the call."""

    a: Any  # (rows, inner)
    b: Any  # (inner, columns)
    run: Callable[[], Any]
    dtype: str | None = None  # the result's type; None: the type of a
    accumulation: str = "plain"

    @property
    def key(self) -> tuple[Any, Any, str | None, str]:
        """The arguments of _core._product() and _core._has_product()."""
        return self.a, self.b, self.dtype, self.accumulation


def _is_short(device: Any, milliseconds: float) -> bool:
    return not device.is_simulated and milliseconds < _SHORT


class ProductTimer:
    """Milliseconds of a product's plans with a cold L2.

    Single launches after a flush, each plan for at most `seconds`. Where `copy` is given, it makes
    the product of a number with other operands: then short products are launched from a graph that
    goes through enough copies to keep the L2 cold. For one thread.
    """

    def __init__(
        self,
        product: TimedProduct,
        seconds: float,
        copy: Callable[[int], TimedProduct] | None = None,
    ) -> None:
        self._product, self._seconds = product, seconds
        self._copies: list[TimedProduct] = []
        self._rule = self._single([])
        device = product.a.device
        if copy is None or not _is_short(device, self._rule):
            return
        cold = _TIMES_L2 * device.attributes["l2_cache_size"]
        count = max(2, -(-cold // (product.a.nbytes + product.b.nbytes)))
        self._copies = [product, *(copy(number) for number in range(1, count))]
        self._rule = self._replayed([])

    @property
    def rule(self) -> float:
        """Milliseconds of the rule's plan."""
        return self._rule

    def milliseconds(self, plan: Sequence[Any]) -> float:
        """The median; [] is the rule's plan. Raises Error for a plan that does not fit."""
        return self._replayed(plan) if self._copies else self._single(plan)

    def _single(self, plan: Sequence[Any]) -> float:
        device = self._product.a.device

        def median() -> float:
            return time_kernel(
                self._product.run,
                device=device,
                cold=not device.is_simulated,
                warmup=1,
                min_samples=3,
                max_seconds=self._seconds,
            ).median

        return float(_core._with_product(list(plan), median))

    def _replayed(self, plan: Sequence[Any]) -> float:
        runs = [each.run for each in self._copies]
        runs *= max(1, _LAUNCHES // len(runs))
        device = self._product.a.device
        replay: Replay = _core._with_product(list(plan), lambda: Replay(runs, device))
        taken = [replay.milliseconds() for _ in range(_REPLAYS)]
        return statistics.median(taken[_SETTLED:])
