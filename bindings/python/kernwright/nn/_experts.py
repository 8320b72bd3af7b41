"""Mixtures of experts: routing, sorting rows by expert, products of groups of rows, the way back.

>>> import numpy as np, kernwright as kw
>>> logits = kw.asarray(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]], np.float32))
>>> weights, experts = kw.nn.route(logits, 2)
>>> experts.numpy().tolist()
[[1, 2], [0, 1]]
>>> sorted_rows = kw.nn.permute(kw.asarray(np.array([[1.0], [2.0]], np.float32)), experts, 3)
>>> sorted_rows.rows.numpy().ravel().tolist(), sorted_rows.offsets.numpy().tolist()
([2.0, 1.0, 2.0, 1.0], [0, 1, 3, 4])
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from kernwright._core import (
    Array,
    _grouped_gradient,
    _grouped_product,
    _permute,
    _route,
    _unpermute,
)
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._activations import Activation, product_activation

__all__ = ["grouped_linear", "grouped_linear_backward", "permute", "route", "unpermute"]

Scores = Literal["softmax", "sigmoid"]


class Routes(NamedTuple):
    """What route() chose: both of shape (tokens, k), float32 and int32."""

    weights: Array
    experts: Array


class Permuted(NamedTuple):
    """Rows sorted by expert. A pair is a token and one of its k experts, numbered token by token.

    `rows` has the shape (tokens * k, columns); `offsets` (experts + 1,), the row where each
    expert's begin, and where all end; `positions` (tokens, k), the row of each pair, or -1;
    `sources` (tokens * k,), the pair of each row, or -1. All but `rows` are int32.
    """

    rows: Array
    offsets: Array
    positions: Array
    sources: Array


def route(
    logits: Any,
    k: int,
    *,
    scores: Scores = "softmax",
    renormalize: bool = True,
    bias: Any = None,
    groups: int = 1,
    groups_kept: int = 1,
    scale: float = 1.0,
) -> Routes:
    """The k experts of each token with the largest scores, and their weights: (weights, experts).

    `logits` of shape (tokens, experts), any real float; scores are their softmax, or their
    sigmoids, in float32. The largest comes first, and of equal ones the lower number (as in
    torch's stable sort); NaN counts as -inf. Weights are the scores of the chosen, divided by
    their sum with `renormalize`, times `scale`. `bias` of shape (experts,) is added to the scores
    for the choice alone.

    With `groups`, experts next to each other form so many groups of one size, and are chosen from
    the `groups_kept` best groups: a group is as good as its best expert, with a bias as its two
    best together (DeepSeek-V2 and -V3). Up to 1024 experts, k and groups up to 32; one kernel.
    Raises InvalidArgument for numbers that do not fit.

    >>> logits = kw.asarray(np.array([[1.0, 1.0, 0.0, 1.0]], np.float32))
    >>> kw.nn.route(logits, 2).weights.numpy().tolist()
    [[0.5, 0.5]]
    """
    if scores not in ("softmax", "sigmoid"):
        raise ArgumentError(f"scores are 'softmax' or 'sigmoid', not {scores!r}")
    made = _route(logits, k, scores == "sigmoid", renormalize, bias, groups, groups_kept, scale)
    return Routes(*made)


def permute(x: Any, experts: Any, expert_count: int) -> Permuted:
    """The rows of x, of shape (tokens, columns) and any dtype, once for each of their experts.

    `experts` of shape (tokens, k), int32 or int64, as route() gives them. Rows are sorted by
    expert, and those of one expert keep the order of their pairs: a counting sort on the device,
    the same in each run. A number outside of the `expert_count` experts, such as -1, gets no row.
    Rows left at the end are 0. At most 2048 experts. Raises InvalidArgument for wrong shapes,
    ArgumentError for experts of another dtype than integers.

    Its gradient is unpermute(grad, positions).

    >>> experts = kw.asarray([[1, 2], [0, 1]], "int32")
    >>> kw.nn.permute(kw.asarray([[1.0], [2.0]]), experts, 3).rows.numpy().ravel()
    array([2., 1., 2., 1.], dtype=float32)
    """
    return Permuted(*_permute(x, experts, expert_count))


def unpermute(rows: Any, positions: Any, weights: Any = None, *, out: Array | None = None) -> Array:
    """sum over k of weights[t, k] * rows[positions[t, k]], of shape (tokens, columns).

    `positions` of shape (tokens, k) as permute() gives them, `weights` alike, 1 where they are left
    out. Sums are float32 (float64 of float64) in the order of k, rounded once to the dtype of
    `rows`. Positions outside of the rows, as -1, add nothing. Raises InvalidArgument for wrong
    shapes, ArgumentError for rows of another dtype than real floats.

    `out` takes the result, and is returned. It has the result's shape, dtype and device, any
    strides, and shares no memory with arguments; what is not contiguous from a multiple of 16 bytes
    on costs a copy.

    >>> rows = kw.asarray(np.array([[1.0], [2.0], [4.0]], np.float32))
    >>> positions = kw.asarray(np.array([[0, 2], [1, -1]], np.int32))
    >>> kw.nn.unpermute(rows, positions).numpy().tolist()
    [[5.0], [2.0]]
    """
    if out is None:
        return _unpermute(rows, positions, weights)
    _unpermute(rows, positions, weights, out=out)
    return out


def _shape(x: Any) -> tuple[Any, ...]:
    """() for what is no array."""
    return tuple(getattr(x, "shape", ()))


def _numbers(
    function: str, offsets: Any, counts: Any, experts: int | None
) -> tuple[Any, Literal["ends", "offsets", "counts"]]:
    """The array that tells the groups, and what it holds."""
    if (offsets is None) == (counts is None):
        raise ArgumentError(f"{function}() takes either offsets or counts")
    if offsets is None:
        return counts, "counts"
    return offsets, "ends" if _shape(offsets) == (experts,) else "offsets"


def grouped_linear(
    x: Any,
    weights: Any,
    offsets: Any = None,
    bias: Any = None,
    *,
    counts: Any = None,
    activation: Activation | None = None,
    gate: Activation | None = None,
    scale_a: Any = None,
    scale_b: Any = None,
    dtype: Any = None,
    use_fast_accum: bool = False,
    out: Array | None = None,
) -> Array:
    """activation(x[r] @ weights[g].T + bias[g]) for each row r of group g.

    - x (rows, k), with group after group, also empty ones; `weights` (groups, n, k), `bias`
      (groups, n), all float16, all bfloat16 or all float32. At most 2048 groups; weights may be
      views. The result is (rows, n); accumulators are float32, added in a fixed order, rounded
      once.
    - `offsets`, int32 or int64 on the device: (groups + 1,), the first rows and the end, as
      Permuted.offsets; or (groups,), the ends, as torch._grouped_mm takes them. Or `counts`,
      (groups,). The host does not read them, and no row outside of x is touched, whatever their
      values are.
    - x (groups, capacity, k) with `counts`: the first counts[g] rows of each group; the result is
      (groups, capacity, n). Result rows outside of all groups are not written.
    - `gate`: the result is gate(y[..., : n / 2]) * y[..., n / 2:] for y = x @ weights.T + bias;
      "silu" is SwiGLU.
    - float8: `scale_a` (rows, k / 128) and `scale_b` (groups, n / 128, k / 128), rounded up; or
      one number or (rows,), and (groups,) or (groups, n), float32. The result is `dtype`: bfloat16
      (if left out), float16 or float32; a bias has one of these types. `use_fast_accum` is that of
      scaled_matmul(). Below compute capability 9.0 operands become bfloat16.
    - `out`: takes the result, as in unpermute(); rows outside of all groups then hold anything.

    Needs compute capability 8.0. Raises InvalidArgument for shapes, and for dtypes that are not
    those of x; ArgumentError for dtypes that it does not take, and for names. The gradient of x is
    grouped_linear(grad, weights.mT, offsets).

    >>> x = kw.ones((3, 8), "bfloat16")
    >>> weights = kw.ones((2, 1, 8), "bfloat16") * kw.asarray([[[1]], [[2]]]).astype("bfloat16")
    >>> offsets = kw.asarray(np.array([0, 1, 3], np.int32))
    >>> kw.nn.grouped_linear(x, weights, offsets).numpy().astype(float).tolist()
    [[8.0], [16.0], [16.0]]

    >>> q, scale_a = kw.nn.quantize_blocks(kw.ones((3, 256)))
    >>> codes, tiles = kw.nn.quant.quantize(kw.ones((2, 128, 256)), "fp8_block")
    >>> y = kw.nn.grouped_linear(q, codes, offsets, scale_a=scale_a, scale_b=tiles)
    >>> y.shape, y.dtype.name, float(y.numpy()[2, 0])
    ((3, 128), 'bfloat16', 256.0)
    """
    for name, value in (("activation", activation), ("gate", gate)):
        if value is not None:
            product_activation(name, value, grouped=True)
    shape = _shape(weights)
    experts = shape[0] if shape else None
    numbers, kind = _numbers("grouped_linear", offsets, counts, experts)
    made = _grouped_product(
        x,
        weights,
        numbers,
        kind,
        bias,
        activation,
        gate,
        scale_a=scale_a,
        scale_b=scale_b,
        dtype=dtype,
        fast_accum=bool(use_fast_accum),
        out=out,
    )
    return made if out is None else out


def grouped_linear_backward(
    grad: Any,
    x: Any,
    weights: Any,
    offsets: Any = None,
    *,
    counts: Any = None,
) -> tuple[Array, Array]:
    """The gradients of x and of the weights of grouped_linear() without bias and activation.

    `grad` of shape (rows, n), x (rows, k), `weights` (groups, n, k), groups as there. Those of x
    are (rows, k), not written where no group has the row; those of the weights are (groups, n, k),
    0 for a group without rows. Raises as grouped_linear().

    >>> x, weights = kw.ones((3, 8), "bfloat16"), kw.ones((2, 4, 8), "bfloat16")
    >>> offsets = kw.asarray([0, 1, 3], "int32")
    >>> dx, dw = kw.nn.grouped_linear_backward(kw.ones((3, 4), "bfloat16"), x, weights, offsets)
    >>> dx.shape, dw.shape
    ((3, 8), (2, 4, 8))
    """
    shape = _shape(weights)
    if len(shape) != 3 or not hasattr(weights, "mT"):
        raise InvalidArgument(f"weights are an array of (groups, n, k), not of shape {shape}")
    numbers, kind = _numbers("grouped_linear_backward", offsets, counts, shape[0])
    of_x = _grouped_product(grad, weights.mT, numbers, kind)
    return of_x, _grouped_gradient(grad, x, numbers, kind, None)
