"""The factor of a loss in half precision, which follows its overflows on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.optim._functions import not_negative
from kernwright.optim._nest import load_named

__all__ = ["LossScale"]


class LossScale:
    """A factor that lifts the gradients of float16 above its smallest numbers.

    Multiply the loss by `scale`, an array of one float32, and pass the object to step(): the
    gradients are divided by it as they are read. Where their norm is not finite, the step is
    skipped, and the factor is multiplied by `backoff`; after `interval` steps one after the other
    that were not, it is multiplied by `growth`. All of this happens on the device behind the step,
    so that the factor used is that of the backward pass, and nothing waits for it. Several
    optimisers whose gradients are computed before the first of their steps need one object each.

    >>> scale = kw.optim.LossScale(1024.0)
    >>> weights = kw.ones(2, "float16")
    >>> optimizer = kw.optim.SGD(weights, lr=0.5)
    >>> norm = optimizer.step(kw.full(2, 1024.0, "float16"), loss_scale=scale)
    >>> weights.numpy(), round(norm.item(), 3)
    (array([0.5, 0.5], dtype=float16), 1.414)
    >>> _ = optimizer.step(kw.full(2, kw.inf, "float16"), loss_scale=scale)
    >>> weights.numpy(), scale.scale.item()
    (array([0.5, 0.5], dtype=float16), 512.0)
    """

    def __init__(
        self, init: float = 65536.0, *, growth: float = 2.0, backoff: float = 0.5,
        interval: int = 2000, device: Any = None,
    ) -> None:  # fmt: skip
        if not (not_negative(init, "init") > 0 and growth >= 1 and 0 < backoff <= 1):
            raise InvalidArgument(
                "init is above 0, growth at least 1 and backoff at most 1, got "
                f"{init}, {growth} and {backoff}"
            )
        if interval < 1:
            raise InvalidArgument(f"interval is 1 at least, got {interval}")
        self.growth, self.backoff, self.interval = float(growth), float(backoff), int(interval)
        self.scale: Array = kernwright.full((), float(init), "float32", device=device)
        self.good: Array = kernwright.zeros((), "int64", device=device)

    def _words(self) -> dict[str, Any]:
        """As the kernel behind a step takes them."""
        return {
            "loss_scale": self.scale, "good": self.good, "growth": self.growth,
            "backoff": self.backoff, "interval": self.interval,
        }  # fmt: skip

    def state_dict(self) -> dict[str, Array]:
        """The factor and the count of steps since it changed: the same memory, no copies.

        >>> sorted(kw.optim.LossScale().state_dict())
        ['good', 'scale']
        """
        return {"scale": self.scale, "good": self.good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copies arrays as state_dict() returns them. Raises InvalidArgument.

        >>> scale = kw.optim.LossScale()
        >>> scale.load_state_dict(kw.optim.LossScale(8.0).state_dict())
        >>> scale.scale.item()
        8.0
        """
        load_named(self.state_dict(), state, "kw.optim.LossScale")
