"""What a recording does with each function: it runs it, and notes it by its rule.

A function is in one of four groups: with a rule in the table; a constant, whose result has no
gradient (comparisons, positions, random numbers); refused, because no formula is there; or made of
others that are recorded one by one, and in no list.
"""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _set_handlers
from kernwright._grad import draws, reduced, targets, writes
from kernwright._grad.calls import Handler, Rule, constant_handler, refused_handler
from kernwright._grad.recording import is_traced, note_extent
from kernwright._grad.table import arrays, attention, linear, nn, reductions, special, vectors
from kernwright.errors import ArgumentError


def _allow_launch(kernel: str, arguments: tuple[Any, ...]) -> None:
    for number, each in enumerate(arguments, 1):
        value = getattr(each, "array", each)
        if is_traced(value):
            raise ArgumentError(
                f"the kernel {kernel} has no gradient, and its argument {number} needs one: wrap "
                "the launch in kw.custom_gradient(forward, backward), or pass kw.stop_gradient()"
            )
        if isinstance(value, Array):
            note_extent(value)  # whether the kernel writes there is not known here


# The results of these functions are positions, tables and draws: constants of a recording.
CONSTANT: frozenset[Any] = frozenset({
    _core._alibi_bias, _core._alibi_slopes, _core._argsort, _core._count_outside,
    _core._extremes, _core._flatnonzero, _core._isin, _core._nonzero, _core._repeat_positions,
    _core._rope_frequencies, _core._rope_tables, _core._sample, _core._searchsorted,
    _core._split_positions, _core._true_positions,
})  # fmt: skip
REFUSED: dict[Any, str] = {
    _core._call_on_tensors: "a function of tensors",
    _core._dequantize_awq: "kw.nn.quant.dequantize()",
    _core._dequantize_codes: "kw.nn.quant.dequantize()",
    _core._dequantize_gguf: "kw.nn.quant.dequantize()",
    _core._dequantize_gptq: "kw.nn.quant.dequantize()",
    _core._dequantize_rows: "kw.nn.dequantize_rows()",
    _core._dequantize_tiles: "kw.nn.quant.dequantize()",
    _core._gradient_norm: "kw.optim.grad_norm()",
    _core._lu_factor: "a factorisation by LU",
    _core._lu_solve: "a factorisation by LU",
    _core._pack_weights: "kw.nn.quant.pack()",
    _core._quantize_blocks: "kw.nn.quantize_blocks()",
    _core._quantize_codes: "kw.nn.quant.quantize()",
    _core._quantize_gguf: "kw.nn.quant.quantize()",
    _core._quantize_rows: "kw.nn.quantize_rows()",
    _core._quantize_tiles: "kw.nn.quant.quantize()",
    _core._scaled_matmul: "kw.nn.scaled_matmul()",
    _core._skinny_product: "a product",
    _core._unique: "the values of unique()",
    # Gradients by kernels: a second derivative would need theirs.
    _core._activate_backward: "the gradient of an activation",
    _core._attention_backward: "the gradient of attention()",
    _core._bias_activate_backward: "the gradient of bias_activation()",
    _core._embedding_backward: "the gradient of embedding()",
    _core._gate_backward: "the gradient of a gated activation",
    _core._grouped_gradient: "the gradient of grouped_linear()",
    _core._l2_norm_backward: "the gradient of l2_norm()",
    _core._norm_backward: "the gradient of a norm",
    _core._pool_backward: "the gradient of pooling",
    _core._pope_shifts: "the gradient of pope()",
    _core._softmax_backward: "the gradient of softmax()",
}
WRITING: dict[Any, str] = {
    _core._append_cache: "kw.nn.append_cache()",
    _core._append_qkv: "kw.nn.append_qkv()",
}
# What these write, by their arguments: no gradients, which are read.
WRITING_SOME: dict[Any, tuple[str, Any]] = {
    _core._blend_tensors: (
        "a sum or an average of parameters",
        lambda to, _from, _a, _b, tokens=None, *_: [to, tokens],
    ),
    _core._optimizer_step: ("a step of an optimiser", lambda *part: _stepped(part)),
    _core._optimizer_steps: (
        "a step of an optimiser", lambda parts, words: [
            *map(_stepped, parts), *map(words.get, ("steps", "loss_scale", "good", "tokens")),
        ],
    ),
    _core._scale_tensors: ("kw.optim.clip_grad_norm()", lambda tensors, _: tensors),
}  # fmt: skip


def _stepped(part: Any) -> list[Any]:
    """Parameters, states and masters of (rule, parameters, gradients, states, masters, options)."""
    return [part[1], *part[3:7]]


# Functions with a rule that returns pairs, and how errors call them.
RULED: dict[Any, tuple[Any, str]] = {
    _core._adopt: (arrays.same, "asarray()"),
    _core._diagonal: (arrays.diagonal, "diagonal()"),
    _core._diagonal_matrix: (arrays.diagonal_matrix, "diag()"),
    _core._diagonal_view: (arrays.diagonal_view, "diagonal()"),
    _core._convolve: (nn.convolve, "a convolution"),
    _core._convolve_weight_gradient: (nn.convolve_weight_gradient, "the gradient of a convolution"),
    _core._dropout: (nn.dropout, "dropout()"),
    _core._embedding: (nn.embedding, "embedding()"),
    _core._activate: (nn.activate, "an activation"),
    _core._gather: (arrays.gather, "take_along_axis()"),
    _core._matmul: (linear.matmul, "matmul()"),
    _core._pool_average: (nn.pool_average, "avg_pool()"),
    _core._resample: (nn.resample, "interpolate()"),
    _core._rows_by_index: (arrays.rows_by_index, "take()"),
    _core._scale_tokens: (nn.scale_tokens, "attention_temperature()"),
    _core._take_at: (arrays.take_at, "an index"),
    _core._triangle: (arrays.triangle, "tril()"),
}
# Functions with a rule for all operands at once.
JOINT: dict[Any, tuple[Any, str]] = {
    _core._bias_activate: (nn.bias_activate, "bias_activation()"),
    _core._concat: (arrays.concat, "concat()"),
    _core._gate: (nn.gate, "a gated activation"),
    _core._merge_qkv: (attention.merge_qkv, "merge_qkv()"),
    _core._permute: (nn.permute, "permute()"),
    _core._pointwise_loss: (nn.pointwise_loss, "a loss"),
    _core._pope: (nn.pope, "pope()"),
    _core._qr: (linear.qr, "qr()"),
}
# Functions with an option that a handler deals with.
OPTIONAL: dict[Any, Rule] = {
    _core._elementwise: Rule(writes.elementwise_pairs, None, False, writes.compute, "out", 2),
    _core._linear: Rule(linear.linear, "linear()", False, nn.activated_layer, "activation", 5),
    _core._reduce: Rule(reductions.reduce, None, False, reduced.reduce, "out", 6),
    _core._scan: Rule(reductions.scan, None, False, reduced.scan, "out", 5),
    _core._softmax: Rule(nn.softmax, "softmax()", False, reduced.softmax, "out", 5),
}
# Functions that may write their results to arrays of the caller: the rule of each, whether the rule
# is for all operands at once, and how errors call the function.
TARGETED: tuple[tuple[Any, Any, bool, str], ...] = (
    (_core._l2_norm, nn.l2_norm, False, "l2_norm()"),
    (_core._norm, nn.norm, True, "a norm"),
    (_core._rope, nn.rope, True, "rope()"),
    (_core._unpermute, nn.unpermute, True, "unpermute()"),
)
_NO_POSITION = 1 << 10  # callers give `out` as a keyword
# Functions with a handler of their own.
OWN: dict[Any, Handler] = {
    _core._add_at: writes.add_at,
    _core._attention: targets.attention_handler(attention.attention, "attention(out=...)"),
    _core._bincount: reduced.bincount,
    _core._compress: arrays.compress,
    _core._cross_entropy: nn.cross_entropy,
    _core._eigen: reduced.eigen,
    _core._float8_attention: targets.attention_handler(
        refused_handler(_core._float8_attention, "kw.nn.attention() of float8"),
        "attention(out=...)",
    ),
    _core._gemm: nn.gemm,
    _core._grouped_product: targets.target_handler(nn.grouped_product, "grouped_linear(out=...)"),
    _core._histogram: reduced.histogram,
    _core._linear_into: targets.linear_into,
    _core._packed_linear: targets.target_handler(
        refused_handler(_core._packed_linear, "kw.nn.linear() with packed weights"),
        "linear(out=...)",
    ),
    _core._paged_attention: targets.attention_handler(
        refused_handler(_core._paged_attention, "kw.nn.paged_attention()"),
        "paged_attention(out=...)",
    ),
    _core._pool_largest: nn.pool_largest,
    _core._put_at: writes.put_at,
    _core._put_where: writes.put_where,
    _core._route: nn.route,
    _core._scatter: writes.scatter,
    _core._sort: arrays.sort,
    _core._split_qkv: attention.split_qkv,
    _core._svd: reduced.svd,
    _core._topk: nn.topk,
}
# Functions that take arrays and compute nothing with their elements.
NEUTRAL: frozenset[Any] = frozenset({
    _core._any_capture, _core._can_cast, _core._dtype, _core._extent, _core._forget,
    _core._from_numpy, _core._has_product, _core._layer_operands, _core._log_warning,
    _core._memory_use, _core._next_order, _core._note, _core._note_checked, _core._note_joint,
    _core._product_plan, _core._promote_types, _core._recordings, _core._result_type,
    _core._sequence, _core._whole_sequence, _core._with_product,
})  # fmt: skip


# Beginnings of the names of functions that a recording has nothing to do with.
_APART = ("_random_", "_set_", "_unrecorded", "_is_")


def _table() -> dict[Any, Handler | Rule]:
    """Function to rule or handler. What is in no list is refused, so that a new function cannot
    lose a gradient in silence."""
    table: dict[Any, Handler | Rule] = {**OPTIONAL, **OWN}
    for joint, ruled in ((False, RULED), (True, JOINT)):
        for function, (rule, said) in ruled.items():
            table[function] = Rule(rule, said, joint)
    for function, rule, joint, said in TARGETED:
        handler = targets.target_handler(function, said.replace("()", "(out=...)"))
        table[function] = Rule(rule, said, joint, handler, "out", _NO_POSITION)
    for function, said in WRITING.items():
        table[function] = writes.writing(function, said)
    for function, (said, written) in WRITING_SOME.items():
        table[function] = writes.writing(function, said, written)
    for function in CONSTANT:
        table[function] = constant_handler(function)
    for name, function in vars(_core).items():
        if not isinstance(function, BuiltinFunctionType) or function in table or name[0] != "_":
            continue
        if function not in NEUTRAL and not name.startswith(_APART):
            table[function] = refused_handler(function, REFUSED.get(function, f"{name}()"))
    return {**table, **draws.handlers(), **_methods(), **_functions()}


def _native(method: Any) -> Any:
    """The function in a method of Array; it can be a key."""
    return getattr(method, "__func__", method)


def _methods() -> dict[Any, Handler | Rule]:
    table: dict[Any, Handler | Rule] = {
        _native(Array.__getitem__): Rule(
            arrays.getitem, "an index", False, writes.select, "key", 1
        ),
        _native(Array.__setitem__): writes.setitem,
        _native(Array._assign): writes.assign,
        _native(Array._assign_numpy): writes.overwriting(Array._assign_numpy, "an assignment"),
        _native(Array._fill): writes.overwriting(Array._fill, "fill()"),
    }
    rules: tuple[tuple[Any, Any, str], ...] = (
        (Array._broadcast, arrays.same, "broadcast()"),
        (Array.astype, arrays.same, "astype()"),
        (Array.copy, arrays.same, "copy()"),
        (Array.reshape, arrays.reshape, "reshape()"),
        (Array.to, arrays.to, "to()"),
        (Array.to_device, arrays.to, "to_device()"),
        (Array.transpose, arrays.transpose, "transpose()"),
        (Array.view, arrays.view, "view()"),
    )
    for method, rule, said in rules:
        table[_native(method)] = Rule(rule, said)
    table[_native(vars(Array)["T"].fget)] = Rule(arrays.transpose, "T")
    handled: tuple[tuple[Any, Handler | Rule], ...] = (
        (Array.cumprod, reduced.scan_method("cumulative_prod")),
        (Array.cumsum, reduced.scan_method("cumulative_sum")),
        (Array.max, reduced.extreme_method("max")),
        (Array.mean, reduced.sum_method("mean")),
        (Array.min, reduced.extreme_method("min")),
        (Array.prod, reduced.sum_method("prod")),
        (Array.std, reduced.spread_method("std")),
        (Array.sum, reduced.sum_method("sum")),
        (Array.var, reduced.spread_method("var")),
    )
    for method, handler in handled:
        table[_native(method)] = handler
    return table


def _functions() -> dict[Any, Handler | Rule]:
    """Functions of Python whose gradient is simpler as a whole."""
    return {
        kw.convolve: vectors.convolve,
        kw.correlate: vectors.correlate,
        kw.frexp: Rule(special.frexp, "frexp()", True, writes.two_parts(kw.frexp), "out", 1),
        kw.interp: vectors.interp,
        kw.linalg.cholesky: Rule(linear.cholesky, "linalg.cholesky()"),
        kw.linalg.det: Rule(linear.det, "linalg.det()"),
        kw.linalg.inv: Rule(linear.inv, "linalg.inv()"),
        kw.linalg.slogdet: Rule(linear.slogdet, "linalg.slogdet()", True),
        kw.linalg.solve: Rule(linear.solve, "linalg.solve()"),
        kw.modf: Rule(special.modf, "modf()", True, writes.two_parts(kw.modf), "out", 1),
        kw.nn.batch_norm: Rule(nn.batch_norm, "batch_norm()", True),
        kw.nn.gru: nn.recurrent(kw.nn.gru, kw.nn.gru_backward),
        kw.nn.lstm: nn.recurrent(kw.nn.lstm, kw.nn.lstm_backward),
        kw.polyval: vectors.polyval,
    }


def install() -> None:
    """Tells the extension the rules and handlers; once."""
    _set_handlers(_table(), writes.ELEMENTWISE, writes.in_place, _allow_launch)
