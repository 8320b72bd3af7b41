"""The memory of adapters before the weights of their model are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernwright.llm._adapters.files import linear_at, read_ranks
from kernwright.llm._adapters.slots import padded_rank, slot_bytes
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm.models._layers import Linear

__all__ = ["AdapterPlan"]


class AdapterPlan(NamedTuple):
    """The network of a model without numbers, and the limits of its adapters."""

    module: Any
    config: Config
    dtype: str
    """That of the slots."""
    most: int
    most_rank: int
    device: Any

    def nbytes(self, paths: Sequence[str]) -> int:
        """Bytes of the device for the slots of layers once the adapters in these folders are
        loaded. Headers are read alone. Raises ModelError, StoreError for wrong files, and
        ModelError for more adapters than slots."""
        if len(paths) > self.most:
            raise ModelError(f"there are {len(paths)} adapters, and {self.most} slots for them")
        ranks: dict[str, int] = {}
        for path in paths:
            found = read_ranks(
                path, self.module, self.config, most_rank=self.most_rank, device=self.device
            )
            for layer, rank in found.items():
                ranks[layer] = max(rank, ranks.get(layer, 0))
        return self._slots(ranks)

    def most_bytes(self) -> int:
        """Bytes once adapters of the highest rank change every linear layer."""
        layers = [path for path, each in self.module.named_modules() if isinstance(each, Linear)]
        return self._slots(dict.fromkeys(layers, self.most_rank))

    def _slots(self, ranks: Mapping[str, int]) -> int:
        return sum(
            slot_bytes(linear_at(self.module, path), self.most, padded_rank(rank), self.dtype)
            for path, rank in ranks.items()
        )
