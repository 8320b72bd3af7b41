"""Rotary embedding of queries and keys, and the tables that it takes.

>>> import numpy as np, kernwright as kw
>>> cos, sin = kw.nn.rope_tables(16, 4)
>>> q, k = kw.ones((1, 16, 8, 4)), kw.ones((1, 16, 2, 4))
>>> turned_q, turned_k = kw.nn.rope(q, k, cos, sin)
>>> turned_k.shape
(1, 16, 2, 4)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright._array.creation import asarray
from kernwright._core import (
    Array,
    _rope,
    _rope_attention_factor,
    _rope_frequencies,
    _rope_tables,
)
from kernwright.errors import ArgumentError
from kernwright.nn._targets import chosen, one_each

__all__ = [
    "rope",
    "rope_attention_factor",
    "rope_backward",
    "rope_frequencies",
    "rope_tables",
]

# Keys of a scaling, in the order in which the kernels' rule takes their numbers.
_NUMBERS = {
    "factor": 1.0,
    "original_max_position_embeddings": 0.0,
    "seq_len": 0.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": 1.0,
    "mscale": 0.0,
    "mscale_all_dim": 0.0,
}
_SCALED = ("linear", "ntk", "yarn", "llama3", "longrope")  # these need a factor
_FACTORS = ("short_factor", "long_factor")
_OTHERS = ("rope_type", "type", "rope_theta", "attention_factor", "partial_rotary_factor",
           "max_position_embeddings", *_FACTORS)  # fmt: skip


def rope_frequencies(
    dim: int,
    *,
    base: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    seq_len: int | None = None,
    device: Any = None,
) -> Array:
    """The (dim / 2,) frequencies 1 / base^(2 i / dim), scaled; float32, computed in double.

    `scaling` is the mapping that model configurations call rope_scaling or rope_parameters, with
    "rope_type" (or "type") and, as transformers' modeling_rope_utils.py has them:

    - "linear": factor. Frequencies are divided by it.
    - "ntk": factor. The base times factor^(dim / (dim - 2)).
    - "dynamic": factor, original_max_position_embeddings; the same with a factor that grows with
      `seq_len` beyond the original length.
    - "yarn": factor, original_max_position_embeddings, beta_fast (32), beta_slow (1), truncate
      (True), attention_factor or mscale and mscale_all_dim.
    - "llama3": factor, original_max_position_embeddings, low_freq_factor, high_freq_factor.
    - "longrope": short_factor and long_factor, dim / 2 divisors of the frequencies each. The long
      ones are used if `seq_len` is above original_max_position_embeddings. Also attention_factor,
      or factor, or max_position_embeddings: this divided by the original number is the factor.

    "rope_theta" in it takes the place of `base`. Raises ArgumentError for unknown names,
    InvalidArgument for an odd `dim` or numbers that make no sense.

    >>> kw.nn.rope_frequencies(4).numpy().round(4)
    array([1.  , 0.01], dtype=float32)
    """
    rule = _rule(base, scaling, seq_len)
    return _rope_frequencies(device, dim, *rule[:3], _divisors(rule, scaling, device))


def rope_tables(
    length: int,
    dim: int,
    *,
    offset: int = 0,
    base: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    seq_len: int | None = None,
    device: Any = None,
) -> tuple[Array, Array]:
    """Cosines and sines of position * frequency, each (length, dim / 2) of float32.

    Row r is position offset + r. The angles are exact products in double, and both are multiplied
    by rope_attention_factor(). `scaling` as in rope_frequencies(); "dynamic" and "longrope" take
    `seq_len`, or offset + length without it. Made on the device.

    >>> cos, sin = kw.nn.rope_tables(16, 8)
    >>> cos.shape, cos[0].numpy().tolist()
    ((16, 4), [1.0, 1.0, 1.0, 1.0])
    """
    if seq_len is None:
        seq_len = offset + length
    rule = _rule(base, scaling, seq_len)
    return _rope_tables(device, length, offset, dim, *rule, _divisors(rule, scaling, device))


def rope_attention_factor(scaling: Mapping[str, Any] | None = None) -> float:
    """What cosines and sines are multiplied by: 1, or as told by attention_factor.

    Without it 0.1 log(factor) + 1 for "yarn", and for "longrope"
    sqrt(1 + log(factor) / log(original_max_position_embeddings)).

    >>> kw.nn.rope_attention_factor()
    1.0
    """
    return _rope_attention_factor(2, *_rule(10000.0, scaling, None))


def rope(
    q: Any,
    k: Any,
    cos: Any,
    sin: Any,
    *,
    positions: Any = None,
    offset: int = 0,
    interleaved: bool = False,
    heads_first: bool = False,
    inplace: bool = False,
    out: Any = None,
) -> Any:
    """q and k with their pairs (a, b) turned: (a cos - b sin, b cos + a sin); one launch.

    q: (batch, tokens, heads, head_dim), or with `heads_first` (batch, heads, tokens, head_dim); the
    batch may be missing. k: the same with other heads, or None. Real floats, any strides. Pairs are
    elements i and i + r / 2 of a head, with `interleaved` 2 i and 2 i + 1; r / 2 is the last extent
    of the tables. What follows the first r elements stays as it is.

    The row of the tables is `offset` plus the number of the token, or plus `positions` of int32 or
    int64, (tokens,) or (batch, tokens). A position outside of the tables raises InvalidArgument;
    one of `positions`, which are on the device, gives NaN. `inplace` writes over q and k. Returns
    the turned q and k, or q alone where k is None.

    `out` takes the results, and is returned: a tuple for q and k, in which None makes a new array,
    or an array where k is None. Each has the shape, dtype and device of its argument and any
    strides with the elements of a head side by side. It may be that argument, and else shares no
    memory with arguments. Raises InvalidArgument for one that does not fit, and ArgumentError.

    >>> cos, sin = kw.nn.rope_tables(16, 8)
    >>> q, k = kw.nn.rope(kw.ones((1, 5, 4, 8)), kw.ones((1, 5, 2, 8)), cos, sin)
    >>> q.shape, k.shape
    ((1, 5, 4, 8), (1, 5, 2, 8))
    """
    call = (q, k, cos, sin, positions, offset, interleaved, heads_first, inplace, False)
    if out is None:
        return _rope(*call)
    if k is None:
        _rope(*call, out=(out, None))
        return out
    q_out, k_out = one_each("rope", out, ("q", "k"))
    return chosen((q_out, k_out), _rope(*call, out=(q_out, k_out)))


def rope_backward(
    grad_q: Any,
    grad_k: Any,
    cos: Any,
    sin: Any,
    *,
    positions: Any = None,
    offset: int = 0,
    interleaved: bool = False,
    heads_first: bool = False,
    inplace: bool = False,
) -> Any:
    """The gradients of q and k: turned back. Everything else as in rope().

    >>> cos, sin = kw.nn.rope_tables(16, 8)
    >>> dq, dk = kw.nn.rope_backward(kw.ones((1, 5, 4, 8)), kw.ones((1, 5, 2, 8)), cos, sin)
    >>> dq.shape, dk.shape
    ((1, 5, 4, 8), (1, 5, 2, 8))
    """
    return _rope(
        grad_q, grad_k, cos, sin, positions, offset, interleaved, heads_first, inplace, True
    )


def _rule(
    base: float, scaling: Mapping[str, Any] | None, seq_len: int | None
) -> tuple[float, str, list[float], float | None]:
    given = dict(scaling or {})
    for name in given:
        if name not in _NUMBERS and name not in _OTHERS:
            known = ", ".join([*_OTHERS, *_NUMBERS])
            raise ArgumentError(f"a scaling has no {name!r}; there are {known}")
    kind = given.get("rope_type", given.get("type", "default"))
    if not isinstance(kind, str):
        raise ArgumentError(f"the rope_type of a scaling is a str, got {kind!r}")
    if kind == "longrope":
        given = _longrope(given)
    if kind == "llama3":
        for name in ("low_freq_factor", "high_freq_factor"):
            if given.get(name) is None:
                raise ArgumentError(f'scaling "llama3" needs {name}')
    if kind in _SCALED and "factor" not in given:
        raise ArgumentError(f'scaling "{kind}" needs a factor')
    numbers = [_number(name, given.get(name), default) for name, default in _NUMBERS.items()]
    if seq_len is not None:
        numbers[2] = float(seq_len)
    attention = given.get("attention_factor")
    theta = _number("rope_theta", given.get("rope_theta"), base)
    if attention is not None:
        attention = _number("attention_factor", attention, 1.0)
    return theta, kind, numbers, attention


def _longrope(given: dict[str, Any]) -> dict[str, Any]:
    """With a factor, which follows from the numbers of positions."""
    if "factor" in given:
        return given
    original = _number("original_max_position_embeddings",
                       given.get("original_max_position_embeddings"), 0.0)  # fmt: skip
    longest = _number("max_position_embeddings", given.get("max_position_embeddings"), 0.0)
    if longest > 0 and original > 0:
        return {**given, "factor": longest / original}
    if given.get("attention_factor") is not None:
        return {**given, "factor": 1.0}
    raise ArgumentError(
        'scaling "longrope" needs an attention_factor, a factor or max_position_embeddings'
    )


def _divisors(
    rule: tuple[float, str, list[float], float | None],
    scaling: Mapping[str, Any] | None,
    device: Any,
) -> Array | None:
    """On the device the factors of longrope that are for so many positions."""
    if rule[1] != "longrope" or scaling is None:
        return None
    original, length = rule[2][1], rule[2][2]
    name = _FACTORS[length > original]
    try:
        factors = np.asarray(scaling.get(name), np.float64)
    except (TypeError, ValueError):
        factors = np.empty((0, 0))
    if factors.ndim != 1 or not (factors > 0).all():
        raise ArgumentError(
            f"{name} of a longrope scaling is a list of numbers above 0, got {scaling.get(name)!r}"
        )
    return asarray(factors, device=device)


def _number(name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    try:
        if isinstance(value, (str, bytes)) or (isinstance(value, bool) and name != "truncate"):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} of a scaling is a number, got {value!r:.60}") from None
    if not math.isfinite(number):
        raise ArgumentError(f"{name} of a scaling is a finite number, got {number}")
    return number
