"""Gradients of the functions of kw.nn: by the kernels that compute them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array
from kernwright._grad.recording import (
    Joint,
    Pairs,
    is_one,
    is_traced,
    keep_column_sums,
    note,
    note_checked,
    note_joint,
    note_write,
)
from kernwright._grad.table.linear import linear
from kernwright.errors import ArgumentError


def constant(name: str, **operands: Any) -> None:
    """Refuses operands that have no gradient."""
    for key, value in operands.items():
        if is_traced(value):
            raise ArgumentError(
                f"{name} has no gradient of its {key}: pass kw.stop_gradient({key})"
            )


def activate(y: Array, kind: str, x: Array, a: float, b: float) -> Pairs:
    return ((x, lambda g: _core._activate_backward(kind, g, x, a, b)),)


def bias_activate(y: Array, kind: str, x: Array, bias: Array, a: float, b: float) -> Joint:
    return (x, bias), (y,), lambda g: _core._bias_activate_backward(kind, g, x, bias, a, b)


def gate(y: Array, kind: str, gate: Array, up: Any = None) -> Joint:
    if up is None:
        return (gate,), (y,), lambda g: (_core._gate_backward(kind, g, gate, None),)
    return (gate, up), (y,), lambda g: tuple(_core._gate_backward(kind, g, gate, up))


def softmax(
    y: Array, x: Array, axis: int, scale: float, mask: Any, dtype: Any, out: Any, log: bool
) -> Pairs:
    found: Pairs = ((x, lambda g: _core._softmax_backward(g, y, axis, scale, log)),)
    if is_traced(mask):
        return *found, (mask, lambda g: _core._softmax_backward(g, y, axis, 1.0, log))
    return found


def norm(
    result: Any, kind: str, x: Array, weight: Any, bias: Any, eps: float, residual: Any,
    quantize: Any, groups: Any,
) -> Joint:  # fmt: skip
    made, _, total = result
    if quantize is not None:
        constant("a norm with quantize", x=x, weight=weight, bias=bias, residual=residual)
        return (), (), lambda *g: ()
    normed = x if total is None else total

    def pull(
        of_made: Any, of_total: Any = None, added: Any = None, columns: bool = False
    ) -> Sequence[Any]:
        if of_made is None:
            return of_total, None, None, of_total
        apart = of_total is not None and _core._is_recording()
        dx, dweight, dbias, sums = _core._norm_backward(
            kind, of_made, normed, weight, eps, bias is not None, groups,
            added=added if of_total is None or apart else of_total,
            columns=columns and not apart,
        )  # fmt: skip
        if sums is not None:
            keep_column_sums(dx, sums)
        dx = dx + of_total if apart else dx
        return dx, dweight, dbias, dx

    pull.adds = total is None  # type: ignore[attr-defined]
    pull.sums_columns = groups is None  # type: ignore[attr-defined]
    results = (made,) if total is None else (made, total)
    return (x, weight, bias, residual), results, pull


def l2_norm(y: Array, x: Array, axis: int, eps: float) -> Pairs:
    return ((x, lambda g: _core._l2_norm_backward(g, x, axis, eps)),)


def batch_norm(
    y: Array, x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Joint:  # fmt: skip
    constant("batch_norm()", running_mean=running_mean, running_var=running_var)
    # The running statistics move on in place; evaluation's gradient needs those of now.
    mean = running_mean if training or running_mean is None else running_mean.copy()
    variance = running_var if training or running_var is None else running_var.copy()

    def pull(g: Array) -> Sequence[Any]:
        if training:
            return kw.nn.batch_norm_backward(g, x, weight=weight, training=True, eps=eps)
        return kw.nn.batch_norm_backward(g, x, mean, variance, weight, training=False, eps=eps)

    return (x, weight, bias), (y,), pull


def dropout(y: Array, x: Array, p: float, seed: int, offset: int, counter: Any) -> Pairs:
    return ((x, lambda g: _core._dropout(g, p, seed, offset, counter)),)


def convolve(
    y: Array, x: Array, weight: Array, bias: Any, geometry: dict[str, Any], transposed: bool,
    precision: Any,
) -> Pairs:  # fmt: skip
    """The gradient of x is the transposed convolution, and the other way round."""
    back = {**geometry, "in": geometry["out"], "out": geometry["in"]}

    def of_weight(g: Array) -> Any:
        if transposed:
            return _core._convolve_weight_gradient(g, x, back, precision)
        return _core._convolve_weight_gradient(x, g, geometry, precision)

    return (
        (x, lambda g: _core._convolve(g, weight, None, back, not transposed, precision)),
        (weight, of_weight),
        (bias, lambda g: kw.sum(g, axis=(0, 2, 3))),
    )


def convolve_weight_gradient(
    dweight: Array, x: Array, dy: Array, geometry: dict[str, Any], precision: Any
) -> Pairs:
    """It is linear in both: <v, dweight> = <dy, the convolution of x with v>."""
    back = {**geometry, "in": geometry["out"], "out": geometry["in"]}
    return (
        (x, lambda v: _core._convolve(dy, v, None, back, True, precision)),
        (dy, lambda v: _core._convolve(x, v, None, geometry, False, precision)),
    )


def recurrent(plain: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of lstm() or gru(): the reserve is kept for the gradient."""
    cell = plain.__name__

    def handler(x: Any, hx: Any, weights: Any, *, reserve: bool = False, **options: Any) -> Any:
        first = [] if hx is None else list(hx) if cell == "lstm" else [hx]
        operands = [x, *first, *weights]
        if not any(is_traced(each) for each in operands):
            return _core._unrecorded(plain, x, hx, weights, reserve=reserve, **options)
        output, states, kept = _core._unrecorded(plain, x, hx, weights, reserve=True, **options)

        def pull(of_output: Any, *of_states: Any) -> Sequence[Any]:
            given = (of_output, tuple(of_states) if cell == "lstm" else of_states[0])
            made = backward(given, x, hx, weights, reserve=kept, **options)
            of_first = [] if hx is None else list(made.hx) if cell == "lstm" else [made.hx]
            return [made.x, *of_first, *made.weights]

        last = list(states) if cell == "lstm" else [states]
        note_joint(f"{cell}()", operands, [output, *last], pull)
        return (output, states, kept) if reserve else (output, states)

    return handler


def embedding(y: Array, ids: Any, table: Array, scale: float, check: bool) -> Pairs:
    rows = table.shape[0]
    return ((table, lambda g: _core._embedding_backward(g, ids, rows, None, scale)),)


def cross_entropy(
    logits: Any, target: Any, reduction: str, label_smoothing: float, z_loss: float,
    ignore_index: int, gradient: bool, in_place: bool, upstream: Any, weight: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The handler: with `in_place` the gradient is computed at once, over the logits."""
    options = (reduction, label_smoothing, z_loss, ignore_index)
    constant("cross_entropy()", target=target, weight=weight)
    if gradient:
        constant("the gradient of cross_entropy()", logits=logits, grad=upstream)
    call = functools.partial(_core._unrecorded, _core._cross_entropy, logits, target, *options)
    if gradient or not is_traced(logits):
        made: tuple[Any, Any] = call(gradient, gradient and in_place, upstream, weight)
        return made
    if not in_place:
        loss = call(False, False, None, weight)[0]

        def pull(g: Array) -> Any:
            return _core._cross_entropy(logits, target, *options, True, False, g, weight)[1]

        note("cross_entropy()", [(logits, pull)], loss)
        return loss, None
    slope = logits.view()
    note_write(slope, "cross_entropy(inplace=True)", True)
    loss = call(True, True, None, weight)[0]

    def scaled(g: Array) -> Any:
        if is_one(g):
            return slope
        g = g.astype(slope.dtype, copy=False)
        return slope * (g[..., None] if reduction == "none" else g)

    note_checked("cross_entropy()", [(logits, scaled)], loss)
    return loss, None


def pointwise_loss(
    result: Any, kind: str, x: Array, target: Array, reduction: str, parameter: float, value: bool,
    gradient: bool, upstream: Any,
) -> Joint:  # fmt: skip
    if gradient:
        constant("the gradient of a loss", x=x, target=target, grad=upstream)
    symmetric = kind in ("squared", "absolute", "huber", "smooth_absolute")
    if not symmetric:
        constant("bce_with_logits()", target=target)

    def pull(g: Any) -> Sequence[Any]:
        made = _core._pointwise_loss(kind, x, target, reduction, parameter, False, True, g)[1]
        return made, -made if symmetric and is_wanted else None

    is_wanted = is_traced(target)
    return (x, target), (result[0],), pull


def rope(
    result: Any, q: Array, k: Any, cos: Any, sin: Any, positions: Any, offset: int,
    interleaved: bool, heads_first: bool, inplace: bool, backward: bool,
) -> Joint:  # fmt: skip
    constant("rope()", cos=cos, sin=sin)
    if inplace:
        constant("rope(inplace=True)", q=q, k=k)
        return (), (), lambda *g: ()
    options = (positions, offset, interleaved, heads_first, False, not backward)

    def pull(*given: Any) -> Sequence[Any]:
        return [None if g is None else _core._rope(g, None, cos, sin, *options) for g in given]

    if k is None:
        return (q,), (result,), pull
    return (q, k), tuple(result), pull


def scale_tokens(
    y: Array, q: Array, floor_scale: float, attn_scale: float, positions: Any, offset: int,
    heads_first: bool,
) -> Pairs:  # fmt: skip
    options = (floor_scale, attn_scale, positions, offset, heads_first)
    return ((q, lambda g: _core._scale_tokens(g, *options)),)


def pope(
    y: Array, x: Array, cos: Any, sin: Any, shifts: Any, grad: Any, positions: Any, offset: int,
    heads_first: bool,
) -> Joint:  # fmt: skip
    constant("pope()", cos=cos, sin=sin, grad=grad)
    options = (positions, offset, heads_first)

    def pull(g: Array) -> Sequence[Any]:
        of_x = _core._pope(x, cos, sin, shifts, g, *options)
        if shifts is None:
            return of_x, None
        return of_x, _core._pope_shifts(g, x, cos, sin, shifts, *options)

    return (x, shifts), (y,), pull


def permute(result: Any, x: Array, experts: Any, count: int) -> Joint:
    positions = result[2]

    def pull(g: Any, *others: Any) -> Sequence[Any]:
        return (_core._unpermute(g, positions, None),)

    return (x,), (result[0],), pull


def unpermute(y: Array, rows: Array, positions: Array, weights: Any) -> Joint:
    def pull(g: Array) -> Sequence[Any]:
        flat = positions.reshape(-1).astype("int64")
        inside = (flat >= 0) & (flat < rows.shape[0])
        place = kw.where(inside, flat, 0)
        share = kw.repeat(g, positions.shape[1], axis=0)
        of_weights = None
        if weights is not None:
            taken = kw.take(rows, place, axis=0)
            products = kw.sum(taken.astype("float32") * share.astype("float32"), axis=1)
            of_weights = kw.where(inside, products, 0).reshape(weights.shape)
            share = (share.astype("float32") * weights.reshape(-1, 1)).astype(g.dtype)
        share = kw.where(inside[:, None], share, 0)
        of_rows = kw.zeros(rows.shape, dtype=rows.dtype, device=rows.device)
        _core._add_at(of_rows, [0], [place], 0, share.astype(rows.dtype))
        return of_rows, of_weights

    return (rows, weights), (y,), pull


def resample(
    y: Array, x: Array, axis: int, extent: int, mode: int, scale: float, align: bool, dtype: Any,
    backward: bool,
) -> Pairs:  # fmt: skip
    before = x.shape[axis]

    def pull(g: Array) -> Any:
        return _core._resample(g, axis, before, mode, scale, align, g.dtype, not backward)

    return ((x, pull),)


def pool_average(y: Array, x: Array, given: dict[str, Any]) -> Pairs:
    return ((x, lambda g: _core._pool_backward(g, None, given)),)


def pool_largest(x: Any, given: dict[str, Any], wants_places: bool) -> tuple[Any, Any]:
    """The handler: the places are kept for the gradient."""
    call = _core._unrecorded
    if not is_traced(x):
        made: tuple[Any, Any] = call(_core._pool_largest, x, given, wants_places)
        return made
    values, places = call(_core._pool_largest, x, given, True)
    note("max_pool()", [(x, lambda g: _core._pool_backward(g, places, given))], values)
    return values, places if wants_places else None


def topk(x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    """The handler: the gradient goes to the places of the values."""
    from kernwright._grad.table.arrays import scattered

    values, places = _core._unrecorded(_core._topk, x, k, axis, largest)
    if is_traced(x):
        shape = x.shape
        note("topk()", [(x, lambda g: scattered(g, shape, axis % len(shape), places))], values)
    return values, places


def activated_layer(
    x: Any, weight: Any, bias: Any, scale: Any, residual: Any, activation: str,
    precision: Any = None,
) -> Any:  # fmt: skip
    """The handler of linear() with an activation, which is computed by itself: its gradient needs
    what goes into it."""
    if is_traced(x) or is_traced(weight) or is_traced(bias):
        apart = is_traced(bias)  # its gradient comes with that of the activation
        made = _core._linear(x, weight, None if apart else bias, scale, None, "", precision)
        if apart:
            made = _core._bias_activate(activation, made, bias, 1.0, 1.0)
        else:
            made = _core._activate(activation, made, 1.0, 1.0)
        return made if residual is None else made + residual
    given = (x, weight, bias, scale, residual, activation, precision)
    made = _core._unrecorded(_core._linear, *given)
    note("linear()", linear(made, *given), made)
    return made


def gemm(a: Any, b: Any, **options: Any) -> Any:
    """The handler of gated layers; other epilogues have no gradient."""
    gate_name = options.pop("gate", None)
    bias, precision = options.pop("bias", None), options.pop("precision", None)
    left = {key for key, value in options.items() if value is not None}
    if not any(is_traced(each) for each in (a, b, bias, *options.values())):
        return _core._unrecorded(
            _core._gemm, a, b, gate=gate_name, bias=bias, precision=precision, **options
        )
    if left:
        raise ArgumentError(
            f"fused_matmul() with {', '.join(sorted(left))} has no gradient: call kw.nn.linear(), "
            "or kw.matmul() and the rest"
        )
    made = _core._matmul(a, b, precision)
    made = made if bias is None else made + bias
    return made if gate_name is None else _core._gate(gate_name, made, None)


def grouped_product(
    x: Any, weights: Any, numbers: Any, kind: str, bias: Any = None, activation: Any = None,
    gate: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """The handler of grouped_linear(): activation and gate by themselves, as in a layer."""
    call = _core._unrecorded
    if not any(is_traced(each) for each in (x, weights, bias)):
        return call(
            _core._grouped_product, x, weights, numbers, kind, bias, activation, gate, **options
        )
    given = {key for key, value in options.items() if value not in (None, False)}
    if given:
        raise ArgumentError(f"grouped_linear() with {', '.join(sorted(given))} has no gradient")
    made = call(_core._grouped_product, x, weights, numbers, kind, bias, None, None)

    def of_bias(g: Array) -> Any:
        ones = kw.ones((*g.shape[:-1], 1), dtype=g.dtype, device=g.device)
        return _core._grouped_gradient(g, ones, numbers, kind, None)[..., 0]

    pairs = (
        (x, lambda g: _core._grouped_product(g, weights.mT, numbers, kind)),
        (weights, lambda g: _core._grouped_gradient(g, x, numbers, kind, None)),
        (bias, of_bias),
    )
    note("grouped_linear()", pairs, made)
    if activation is not None:
        return _core._activate(activation, made, 1.0, 1.0)
    return made if gate is None else _core._gate(gate, made, None)


def route(
    logits: Any, k: int, sigmoid: bool, renormalize: bool, bias: Any, groups: int, kept: int,
    scale: float,
) -> tuple[Any, Any]:  # fmt: skip
    """The handler: the choice is constant, the weights of the chosen follow the scores."""
    constant("route()", bias=bias)
    weights, experts = _core._unrecorded(
        _core._route, logits, k, sigmoid, renormalize, bias, groups, kept, scale
    )
    if not is_traced(logits):
        return weights, experts
    wide = logits.astype("float32", copy=False)
    scores = _core._activate("sigmoid", wide, 1.0, 1.0) if sigmoid else kw.nn.softmax(wide)
    chosen = kw.take_along_axis(scores, experts.astype("int64"), axis=-1)
    if renormalize:
        chosen = chosen / kw.sum(chosen, axis=-1, keepdims=True)
    return chosen * scale, experts
