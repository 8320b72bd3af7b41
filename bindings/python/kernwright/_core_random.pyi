"""Random numbers in the extension module; `kernwright.random` makes them comfortable."""

from typing import Any

from kernwright._core_array import Array

def _random_uniform(
    out: Array, low: float, high: float, seed: int, offset: int, counter: Array | None, /
) -> None: ...
def _random_normal(
    out: Array, mean: float, deviation: float, seed: int, offset: int, counter: Array | None, /
) -> None: ...
def _random_exponential(
    out: Array, mean: float, unused: float, seed: int, offset: int, counter: Array | None, /
) -> None: ...
def _random_gamma(
    out: Array, shape: float, scale: float, seed: int, offset: int, counter: Array | None, /
) -> None: ...
def _random_bernoulli(
    out: Array, p: float, unused: float, seed: int, offset: int, counter: Array | None, /
) -> None: ...
def _random_integers(
    out: Array, low: int, range: int, seed: int, offset: int, counter: Array | None, /
) -> None:
    """`low` modulo 2**64, and how many numbers there are, 0 for 2**64."""

def _random_parametric(
    out: Array,
    kind: str,
    parameters: list[float | Array],
    seed: int,
    offset: int,
    counter: Array | None,
    /,
) -> None: ...
def _random_multinomial(
    out: Array,
    chances: Array,
    trials: float | Array,
    seed: int,
    offset: int,
    counter: Array | None,
    /,
) -> None: ...
def _random_permutation(
    n: int, count: int, dtype: Any, seed: int, offset: int, counter: Array | None, device: Any, /
) -> Array: ...
def _random_choice(
    weights: Array, count: int, replace: bool, seed: int, offset: int, counter: Array | None, /
) -> Array: ...
def _rows_by_index(x: Array, index: Array, /) -> Array: ...
def _advance_counter(counter: Array, by: int, /) -> None: ...
def _take_counter(counter: Array, by: int, /) -> Array: ...
