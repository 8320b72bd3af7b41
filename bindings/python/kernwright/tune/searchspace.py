"""Searchspace: a space of configurations as Kernel Tuner's strategies know it, as tuples."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._space import Space

__all__ = ["Searchspace"]

Values = tuple[Any, ...]
# NOTE: within the class `list` is its property.
Many = list[Values]
Numbers = list[int]
Anything = list[Any]


class Searchspace:
    """Configurations are tuples of values in the parameters' order; `list` has all valid ones.

    `tune_params` has the values by parameter, `param_names` and `params_values` its two halves,
    `size` the number of configurations. A strategy of tune_kernel() gets one; `space` is the
    kw.tune.Space behind it.

    >>> space = kw.tune.searchspace.Searchspace(kw.tune.Space(block=[32, 64], tile=[1, 2]))
    >>> space.size, space.is_param_config_valid((64, 3))
    (4, False)
    >>> sorted(space.get_neighbors((64, 1), "Hamming"))
    [(32, 1), (64, 2)]
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.tune_params = {name: list(values) for name, values in space.parameters.items()}
        self.param_names = list(self.tune_params)
        self.params_values = tuple(map(tuple, self.tune_params.values()))
        self.num_params = len(self.param_names)
        self.size = len(space)

    def _config(self, param_config: Sequence[Any]) -> Config:
        if isinstance(param_config, (str, Mapping)) or not hasattr(param_config, "__iter__"):
            raise ArgumentError(
                f"a configuration is a tuple of values, got {type(param_config).__name__}"
            )
        values = tuple(param_config)
        if len(values) != self.num_params:
            raise InvalidArgument(
                f"{values!r} has {len(values)} values for the parameters "
                f"{', '.join(self.param_names)}"
            )
        return Config(dict(zip(self.param_names, values, strict=True)))

    @staticmethod
    def _tuple(config: Mapping[str, Any]) -> Values:
        return tuple(config.values())

    @property
    def list(self) -> Many:
        """All of them."""
        return list(self)

    def __iter__(self) -> Iterator[Values]:
        return map(self._tuple, self.space)

    def __len__(self) -> int:
        return self.size

    def sorted_list(self, sort_last_param_first: bool = False) -> Many:
        """All of them, sorted by the places of their values; those of the first parameter count
        most, or those of the last."""
        places = [{value: i for i, value in enumerate(values)} for values in self.params_values]

        def key(values: Values) -> Numbers:
            found = [each[value] for each, value in zip(places, values, strict=True)]
            return found[::-1] if sort_last_param_first else found

        return sorted(self, key=key)

    def is_param_config_valid(self, param_config: Sequence[Any]) -> bool:
        """Whether the space has it."""
        return self._config(param_config) in self.space

    def get_param_config_index(self, param_config: Sequence[Any]) -> int | None:
        """The place in `list`; None for a configuration that is not valid."""
        config = self._config(param_config)
        return self.space.index(config) if config in self.space else None

    def get_param_configs_at_indices(self, indices: Iterable[int]) -> Many:
        """Those at places of `list`."""
        return [self._tuple(self.space[int(index)]) for index in indices]

    def get_random_sample_indices(self, num_samples: int) -> Numbers:
        """Different ones, drawn by Python's module random. InvalidArgument for too many."""
        if not 0 <= num_samples <= self.size:
            raise InvalidArgument(f"{num_samples} samples of a space of {self.size} configurations")
        return random.sample(range(self.size), num_samples)

    def get_random_sample(self, num_samples: int) -> Many:
        """Different ones; all of them where the space has fewer."""
        count = min(num_samples, self.size)
        return self.get_param_configs_at_indices(self.get_random_sample_indices(count))

    def get_neighbors(
        self, param_config: Sequence[Any], neighbor_method: str | None = None
    ) -> Many:
        """The valid configurations beside one: "Hamming" (one value differs, the default),
        "adjacent" (each differs by one step at most, over the values that occur), or
        "strictly-adjacent" (over the values of the parameter)."""
        config = self._config(param_config)
        method = neighbor_method or "Hamming"
        if method in ("Hamming", "adjacent"):
            return [self._tuple(each) for each in self.space.neighbours(config, method)]
        if method != "strictly-adjacent":
            raise InvalidArgument(
                f'neighbor_method is "Hamming", "adjacent" or "strictly-adjacent", got {method!r}'
            )
        own = self._places(param_config)
        return [
            values
            for values in map(self._tuple, self.space.neighbours(config, "adjacent"))
            if all(abs(a - b) <= 1 for a, b in zip(self._places(values), own, strict=True))
        ]

    def _places(self, values: Sequence[Any]) -> Numbers:
        return [known.index(value) for known, value in zip(self.params_values, values, strict=True)]

    def get_random_neighbor(
        self, param_config: Sequence[Any], neighbor_method: str | None = None
    ) -> Values | None:
        """None where it has none."""
        found = self.get_neighbors(param_config, neighbor_method)
        return random.choice(found) if found else None

    def get_param_neighbors(
        self, param_config: Sequence[Any], index: int, neighbor_method: str, randomize: bool
    ) -> Anything:
        """The other values of the parameter number `index` among the neighbours."""
        found = {values[index] for values in self.get_neighbors(param_config, neighbor_method)}
        others = [value for value in self.params_values[index] if value in found]
        others = [value for value in others if value != param_config[index]]
        if randomize:
            random.shuffle(others)
        return others
