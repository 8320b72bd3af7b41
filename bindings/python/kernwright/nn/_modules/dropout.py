"""Dropout as a layer: masks from a counter on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernwright import _core
from kernwright._core import Array
from kernwright.nn import _gates
from kernwright.nn._modules import settings
from kernwright.nn._modules.module import Module
from kernwright.random._functions import default_generator
from kernwright.random._sequence import whole

__all__ = ["Dropout"]

_WORD = 2**64


class MaskSequence:
    """The seed and the counter of a layer's masks; each call takes the next ones.

    The counter lies on the device, so a graph takes new masks at each launch.
    """

    def __init__(self, seed: int | None, device: Any) -> None:
        if seed is None:
            seed = default_generator()._draw(1, lambda s, offset, _: _mixed(s, offset))
        self.seed = whole(seed, "seed")
        self._counter = _core.empty(1, "uint64", device=device)
        self._counter._fill(0)

    def take(self, count: int, device: Any) -> Array:
        """The place of the next `count` masks, as an array that stays as it is."""
        if self._counter.device != device:
            self._counter = self._counter.to(device)
        if _core._is_recording():
            from kernwright._grad.draws import note_seed

            note_seed(self)
        return _core._take_counter(self._counter, count)

    def state(self) -> dict[str, int]:
        """The seed and the place in its sequence, which is read from the device."""
        return {"seed": self.seed, "counter": int(self._counter.item())}

    def restore(self, state: Mapping[str, int]) -> None:
        """Goes on where state() was taken."""
        self.seed = whole(state["seed"], "seed")
        self._counter._fill(whole(state["counter"], "counter"))


def _mixed(seed: int, offset: int) -> int:
    """A seed that neither the generator nor a layer made before draws from (splitmix64)."""
    z = (seed + (offset + 1) * 0x9E3779B97F4A7C15) % _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
    return z ^ (z >> 31)


class Dropout(Module):
    """Every element is 0 with chance `p`, else multiplied by 1 / (1 - p), while `training`; after
    eval() the layer returns its argument.

    Each call takes the next mask of `seed`, or of a seed from the generator of kw.random. The place
    in the sequence is kept on the device: a graph has a new mask at each launch. All calls must
    then be on one stream. A copy goes on where the layer is.

    >>> layer, x = kw.nn.Dropout(0.25, seed=3), kw.ones(6)
    >>> layer(x).shape, layer.eval()(x) is x
    ((6,), True)
    """

    def __init__(self, p: float = 0.5, *, seed: int | None = None, device: Any = None) -> None:
        self.p = settings.chance(p, "p")
        self._masks = MaskSequence(seed, device)

    def __call__(self, x: Any) -> Any:
        if not self.training or self.p == 0:
            return x
        masks = self._masks
        return _gates.dropout(x, self.p, seed=masks.seed, counter=masks.take(1, x.device))

    def extra_repr(self) -> str:
        """The settings that repr() shows."""
        return f"p={self.p}"
