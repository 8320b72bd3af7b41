"""Sums of gradients over several batches, with their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._nest import Parameters, leaves, load_named, require_kinds

__all__ = ["Accumulator"]


class Accumulator:
    """Gradients of several batches as one: their sum over all tokens, in float32 (float64 of
    float64 parameters), and the number of the tokens.

    optimizer.step(accumulator) steps by the mean over all tokens of the window, however many each
    batch had, and begins a new window; it may come after any number of batches. A window without
    tokens takes no step. The counts stay on the device, so that graphs record both.

    >>> weights = kw.zeros(1)
    >>> optimizer = kw.optim.SGD(weights, lr=1.0)
    >>> window = kw.optim.Accumulator(weights)
    >>> window.add(kw.full(1, 6.0), tokens=1)
    >>> window.add(kw.full(1, 2.0), tokens=3)
    >>> optimizer.step(window)
    >>> weights.numpy()
    array([-3.], dtype=float32)
    """

    def __init__(self, params: Any) -> None:
        self._parameters = Parameters(params)
        self.sums: dict[str, Array] = {
            name: kernwright.zeros_like(each, _sum_dtype(each))
            for name, each in self._parameters.arrays.items()
        }
        device = next(iter(self.sums.values())).device
        self.tokens: Array = kernwright.zeros((), "int64", device=device)

    def add(
        self, grads: Any, tokens: int | Array = 1, *, reduction: Literal["mean", "sum"] = "mean"
    ) -> None:
        """Adds gradients in the nest of the parameters, of a loss that is the mean over `tokens`
        tokens, or with `reduction` "sum" their sum. `tokens` may be an array of one int64. Batches
        of no tokens change nothing, even if their gradients are NaN. When it raises, nothing has
        changed: InvalidArgument for gradients that do not fit.

        >>> window = kw.optim.Accumulator(kw.zeros(2))
        >>> window.add(kw.ones(2), tokens=kw.asarray([8]))
        >>> window.tokens.item(), window.sums["0"].numpy()
        (8, array([8., 8.], dtype=float32))
        """
        if reduction not in ("mean", "sum"):
            raise InvalidArgument(f'reduction is "mean" or "sum", got {reduction!r:.40}')
        found = self._parameters.gradients(grads)
        weight, number = None, 1
        if hasattr(tokens, "__index__") and not hasattr(tokens, "shape"):
            number = int(tokens)
        else:
            weight = device_array(tokens, "tokens")
            if weight.dtype.kind not in "iu":
                raise ArgumentError(f"tokens are an int or one int64, got {weight.dtype}")
            weight = weight.astype("int64", copy=False)
        try:
            _core._blend_tensors(
                [self.sums[name] for name in found], list(found.values()), 1.0, 1.0, self.tokens,
                weight, number, reduction == "mean",
            )  # fmt: skip
        except InvalidArgument:
            require_kinds(found, self.tokens.device)
            raise

    def reset(self) -> None:
        """Begins a new window.

        >>> window = kw.optim.Accumulator(kw.zeros(2))
        >>> window.add(kw.ones(2)); window.reset()
        >>> window.tokens.item()
        0
        """
        self.tokens._fill(0)

    def mean(self) -> Any:
        """The mean over the tokens so far, in the nest of the parameters; of none NaN.

        >>> window = kw.optim.Accumulator({"w": kw.zeros(2)})
        >>> window.add({"w": kw.full(2, 4.0)}, tokens=2, reduction="sum")
        >>> window.mean()["w"].numpy()
        array([2., 2.], dtype=float32)
        """
        tokens = self.tokens
        divided = {name: each / tokens.astype(each.dtype) for name, each in self.sums.items()}
        return self._parameters.nest(divided)

    def state_dict(self) -> dict[str, Any]:
        """The sums in the nest of the parameters, and the tokens: the same memory, no copies.

        >>> sorted(kw.optim.Accumulator(kw.zeros(2)).state_dict())
        ['sums', 'tokens']
        """
        return {"sums": self._parameters.nest(self.sums), "tokens": self.tokens}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copies arrays as state_dict() returns them. Raises InvalidArgument.

        >>> window = kw.optim.Accumulator(kw.zeros(2))
        >>> window.load_state_dict(kw.optim.Accumulator(kw.zeros(2)).state_dict())
        """
        if set(state) != {"sums", "tokens"}:
            raise InvalidArgument(f"the states are sums and tokens, got {sorted(state)}")
        load_named(
            {**self.sums, "tokens": self.tokens},
            {**leaves(state["sums"], "sums"), "tokens": state["tokens"]},
            "kw.optim.Accumulator",
        )


def _sum_dtype(param: Array) -> str:
    return "float64" if param.dtype.name == "float64" else "float32"
