"""Embedding: rows of a table by their numbers.

>>> import numpy as np, kernwright as kw
>>> table = kw.asarray(np.array([[0, 0], [1, 2], [3, 4]], np.float32))
>>> kw.nn.embedding(kw.asarray(np.array([2, 1])), table).numpy().tolist()
[[3.0, 4.0], [1.0, 2.0]]
"""

from __future__ import annotations

import operator
from typing import Any

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array, _embedding, _embedding_backward
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["embedding", "embedding_backward", "one_hot"]


def embedding(ids: Any, table: Any, *, scale: float = 1.0, check: bool = False) -> Array:
    """scale * table[ids]: shape ids.shape + (D,), the dtype of the table (V, D), real floats.

    `ids` is of int32 or int64. A number outside of [0, V) reads nothing and gives zeros; with
    `check` the call waits for the device and raises InvalidArgument with the first such number.
    Raises ArgumentError for other dtypes, InvalidArgument for a table without two dimensions.

    >>> table = kw.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> kw.nn.embedding(kw.asarray([2, 1]), table).numpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    return _embedding(ids, table, scale, check)


def embedding_backward(
    grad: Any, ids: Any, num_rows: int, *, padding_idx: int | None = None, scale: float = 1.0
) -> Array:
    """The gradient of the table, (num_rows, D), from that of the rows, ids.shape + (D,).

    Row v is the sum of scale * grad[i] over all places i with ids[i] == v, in the order of i and
    in float32 (float64 for float64): the same in every run. Row `padding_idx` gets no gradient.

    >>> kw.nn.embedding_backward(kw.ones((2, 1)), kw.asarray([2, 2]), 3).numpy()
    array([[0.],
           [0.],
           [2.]], dtype=float32)
    """
    return _embedding_backward(grad, ids, num_rows, padding_idx, scale)


def one_hot(ids: Any, num_classes: int | None = None, *, dtype: Any = "int64") -> Array:
    """1 at the place of each number and 0 elsewhere: shape ids.shape + (num_classes,).

    `ids` is of integers. Without `num_classes` the largest number + 1, which waits for the device.
    A number outside of [0, num_classes) gives zeros alone.

    >>> kw.nn.one_hot(kw.asarray([2, 0]), 3).numpy()
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    numbers = device_array(ids, "ids")
    if numbers.dtype.kind not in "iu":
        raise InvalidArgument(f"ids are integers, not {numbers.dtype}")
    if num_classes is None:
        if numbers.size == 0:
            raise InvalidArgument("ids are empty: pass num_classes")
        num_classes = int(numbers.max().item()) + 1
    try:
        count = operator.index(num_classes)
    except TypeError:
        raise ArgumentError(f"num_classes is an int, got {num_classes!r:.60}") from None
    if count < 1:
        raise InvalidArgument(f"num_classes is above 0, got {count}")
    classes = kernwright.arange(count, dtype="int64", device=numbers.device)
    return (numbers[..., None] == classes).astype(dtype)
