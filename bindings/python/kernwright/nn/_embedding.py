"""Embedding: rows of a table by their numbers.

>>> import numpy as np, kernwright as kw
>>> table = kw.asarray(np.array([[0, 0], [1, 2], [3, 4]], np.float32))
>>> kw.nn.embedding(kw.asarray(np.array([2, 1])), table).numpy().tolist()
[[3.0, 4.0], [1.0, 2.0]]
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _embedding, _embedding_backward

__all__ = ["embedding", "embedding_backward"]


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
