"""An average of the parameters over the steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.optim._nest import Parameters, leaves, load_named

__all__ = ["EMA"]


class EMA:
    """The exponential moving average of parameters, in float32 (float64 of float64): update()
    makes it decay * average + (1 - decay) * parameter, by one launch for up to 48 arrays.

    >>> weights = kw.zeros(2)
    >>> average = kw.optim.EMA(weights, decay=0.75)
    >>> weights.fill(1.0)
    >>> average.update()
    >>> average.values[0].numpy()
    array([0.25, 0.25], dtype=float32)
    """

    def __init__(self, params: Any, decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise InvalidArgument(f"decay lies between 0 and 1, got {decay}")
        self.decay = float(decay)
        self._parameters = Parameters(params)
        self._values = {
            name: each.astype("float64" if each.dtype.name == "float64" else "float32")
            for name, each in self._parameters.arrays.items()
        }

    @property
    def values(self) -> Any:
        """The average in the nest of the parameters."""
        return self._parameters.nest(self._values)

    def update(self) -> None:
        """Moves the average towards the parameters.

        >>> kw.optim.EMA(kw.zeros(2)).update()
        """
        now = self._parameters.now()
        _core._blend_tensors(
            [self._values[name] for name in now], list(now.values()), self.decay, 1 - self.decay,
            None, None, 1, False,
        )  # fmt: skip

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """In its block the parameters hold the average; afterwards what they held before.

        >>> weights = kw.ones(2)
        >>> average = kw.optim.EMA(weights)
        >>> weights.fill(3.0)
        >>> with average.applied():
        ...     weights.numpy().tolist()
        [1.0, 1.0]
        >>> weights.numpy().tolist()
        [3.0, 3.0]
        """
        now = self._parameters.now()
        kept = {name: each.copy() for name, each in now.items()}
        try:
            for name, each in now.items():
                each[...] = self._values[name]
            yield
        finally:
            for name, each in now.items():
                each[...] = kept[name]

    def state_dict(self) -> dict[str, Any]:
        """The average in the nest of the parameters: the same memory, no copies.

        >>> list(kw.optim.EMA(kw.zeros(2)).state_dict())
        ['average']
        """
        return {"average": self.values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copies arrays as state_dict() returns them. Raises InvalidArgument.

        >>> average = kw.optim.EMA(kw.zeros(2))
        >>> average.load_state_dict(kw.optim.EMA(kw.ones(2)).state_dict())
        >>> average.values[0].numpy().tolist()
        [1.0, 1.0]
        """
        if set(state) != {"average"}:
            raise InvalidArgument(f"the state is the average, got {sorted(state)}")
        load_named(self._values, leaves(state["average"], "average"), "kw.optim.EMA")
