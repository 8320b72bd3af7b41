"""Tokens from logits."""

from __future__ import annotations

import sys
from typing import Any

from kernwright import _core, random
from kernwright._array.creation import full
from kernwright._array.sorting import _whole
from kernwright._core import Array
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument

__all__ = ["greedy", "sample"]


def sample(
    logits: Array, *, temperature: float | Array = 1.0, top_k: int | Array = 0,
    top_p: float | Array = 1.0, min_p: float | Array = 0.0,
    repetition_penalty: float | Array = 1.0, previous: Array | None = None,
    seed: int | Array | None = None, step: int | Array = 0,
    counter: Array | None = None, out: Array | None = None,
) -> Array:  # fmt: skip
    """A token of each row of `logits` (..., tokens), as int64 of shape logits.shape[:-1].

    In this order:

    - logits of tokens in `previous` (a row of tokens for each row, -1 for none, any number) are
      divided by `repetition_penalty` where they are above 0 and multiplied with it elsewhere;
    - all are divided by `temperature`; 0 takes the highest one;
    - `top_k` keeps so many of the highest (0: all), of equal ones the lower tokens;
    - `top_p` keeps the most probable of these that together have this probability, at least one;
    - `min_p` keeps those at least so probable, compared to the most probable one.

    Each may be an array of the device with one value for each row. A token is drawn with the chance
    exp(logit / temperature) among what is left; tokens below 2 to the -40 of the most probable
    one's chance are not drawn. NaN counts as -infinity, and a row without anything above
    -infinity gives 0. Logits are float16, bfloat16 or float32, up to 2**22 tokens.

    The random number of a row depends on `seed`, `step` and the row's number. With a seed for each
    row (uint64 or int64, on the device) it depends on the row's seed and step alone; `step` may
    be an array of one int32 for each row, too. Without a seed each call is a step of the default
    generator of kw.random, also under kw.captured(). In another graph, pass `counter` (one uint64
    on the device, added to the step, and moved on by 1 behind the draw) and `out`, so that each
    replay draws anew into the same memory. Raises InvalidArgument, ArgumentError.

    >>> logits = kw.asarray(np.array([[0.0, 9.0, 1.0]], np.float32))
    >>> kw.nn.sample(logits, top_k=1, seed=0).numpy().tolist()
    [1]
    """
    values = _logits(logits)
    target = _target(values, out)
    if not _on_device(step):
        step = _whole(step, "step")
        if not 0 <= step < 2**64:
            raise ArgumentRangeError(f"step is from 0 to 2^64 - 1, got {step}")
    moved = None
    if seed is None:
        moved = counter
        seed, step, counter = random.default_generator()._draw(
            1, lambda *place: _next_step(place, step, counter, values.device)
        )
    if not _on_device(seed):
        seed = _whole(seed, "seed") % 2**64
    _core._sample(
        target, values,
        _real(temperature, "temperature", 0, sys.float_info.max), _count(top_k),
        _real(top_p, "top_p", 0, 1), _real(min_p, "min_p", 0, 1),
        _real(repetition_penalty, "repetition_penalty", 0, sys.float_info.max), previous,
        seed, step, counter,
    )  # fmt: skip
    if moved is not None and moved is not counter:
        _core._advance_counter(moved, 1)
    return target


def greedy(logits: Array, *, out: Array | None = None) -> Array:
    """The token of the highest logit of each row of `logits`, of equal ones the lowest, as int64.

    NaN counts as -infinity: a row of nothing else gives 0.

    >>> kw.nn.greedy(kw.asarray([[0.0, 3.0, 1.0], [5.0, 0.0, 0.0]])).numpy()
    array([1, 0])
    """
    values = _logits(logits)
    target = _target(values, out)
    _core._sample(target, values, 0.0, 0, 1.0, 0.0, 1.0, None, 0, 0, None)
    return target


def _on_device(value: Any) -> bool:
    return isinstance(value, Array) or hasattr(value, "__dlpack_device__")


def _next_step(
    place: tuple[int, int, Array | None], step: Any, counter: Array | None, device: Any
) -> tuple[int, Any, Array | None]:
    """The seed, step and counter of a call without a seed, by the place in the sequence of the
    default generator: its offset and the word of a graph are added to the step."""
    generated, offset, word = place
    seed = (generated + 1) * 0x9E3779B97F4A7C15 % 2**64  # other numbers than the generator's own
    if word is None and not _on_device(step):
        return seed, (step + offset) % 2**64, counter
    total = full(1, offset, "uint64", device=device)
    for each in (word, counter):
        if each is not None:
            total = total + each.reshape(1)
    return seed, step, total


def _logits(value: Any) -> Array:
    array = value if isinstance(value, Array) else _core._adopt(value)
    if array is None:
        raise ArgumentError(
            f"logits is an array of a device, got {type(value).__name__}: copy host data there "
            "with kernwright.asarray()"
        )
    if array.ndim == 0:
        raise InvalidArgument("logits need an axis of tokens, and have no axis")
    return array


def _target(logits: Array, out: Array | None) -> Array:
    shape = logits.shape[:-1]
    if out is None:
        return _core.empty(shape, "int64", device=logits.device)
    if not isinstance(out, Array):
        raise ArgumentError(f"out is an array of a device, got {type(out).__name__}")
    if out.shape != shape:
        raise InvalidArgument(f"out has shape {out.shape}, and the rows of logits {shape}")
    return out


def _real(value: Any, name: str, low: float, high: float) -> Any:
    if _on_device(value):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} is a number, or an array of one for each row, got {type(value).__name__}"
        ) from None
    if not low <= number <= high or (name == "repetition_penalty" and number == 0):
        limits = f"from {low} to {high}" if high == 1 else "finite and not negative"
        limits = "finite and above 0" if name == "repetition_penalty" else limits
        raise InvalidArgument(f"{name} is {limits}, got {number}")
    return number


def _count(value: Any) -> Any:
    if _on_device(value):
        return value
    number = _whole(value, "top_k")
    if number < 0:
        raise ArgumentRangeError(f"top_k is not negative, got {number}")
    return min(number, 2**31 - 1)
