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
from kernwright._grad import draws, reduced, writes
from kernwright._grad.calls import Handler, Rule, constant_handler, refused_handler
from kernwright._grad.recording import is_traced, note_extent
from kernwright._grad.table import arrays, linear, nn, reductions, vectors
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
CONSTANT = frozenset({
    "_alibi_bias", "_alibi_slopes", "_argsort", "_count_outside", "_extremes", "_flatnonzero",
    "_isin", "_nonzero", "_repeat_positions", "_rope_frequencies", "_rope_tables", "_sample",
    "_searchsorted", "_split_positions", "_true_positions",
})  # fmt: skip
REFUSED = {
    "_call_on_tensors": "a function of tensors",
    "_dequantize_awq": "kw.nn.quant.dequantize()",
    "_dequantize_codes": "kw.nn.quant.dequantize()",
    "_dequantize_gguf": "kw.nn.quant.dequantize()",
    "_dequantize_gptq": "kw.nn.quant.dequantize()",
    "_dequantize_rows": "kw.nn.dequantize_rows()",
    "_dequantize_tiles": "kw.nn.quant.dequantize()",
    "_float8_attention": "kw.nn.attention() of float8",
    "_gradient_norm": "kw.optim.grad_norm()",
    "_lu_factor": "a factorisation by LU",
    "_lu_solve": "a factorisation by LU",
    "_pack_weights": "kw.nn.quant.pack()",
    "_paged_attention": "kw.nn.paged_attention()",
    "_packed_linear": "kw.nn.linear() with packed weights",
    "_quantize_blocks": "kw.nn.quantize_blocks()",
    "_quantize_codes": "kw.nn.quant.quantize()",
    "_quantize_gguf": "kw.nn.quant.quantize()",
    "_quantize_rows": "kw.nn.quantize_rows()",
    "_quantize_tiles": "kw.nn.quant.quantize()",
    "_scaled_matmul": "kw.nn.scaled_matmul()",
    "_skinny_product": "a product",
    "_unique": "the values of unique()",
    # Gradients by kernels: a second derivative would need theirs.
    "_activate_backward": "the gradient of an activation",
    "_attention_backward": "the gradient of attention()",
    "_blend_tensors": "the average of parameters",
    "_bias_activate_backward": "the gradient of bias_activation()",
    "_embedding_backward": "the gradient of embedding()",
    "_gate_backward": "the gradient of a gated activation",
    "_grouped_gradient": "the gradient of grouped_linear()",
    "_l2_norm_backward": "the gradient of l2_norm()",
    "_norm_backward": "the gradient of a norm",
    "_pool_backward": "the gradient of pooling",
    "_pope_shifts": "the gradient of pope()",
    "_softmax_backward": "the gradient of softmax()",
}
WRITING = {
    "_append_cache": "kw.nn.append_cache()",
    "_append_qkv": "kw.nn.append_qkv()",
    "_optimizer_step": "a step of an optimiser",
    "_scale_tensors": "kw.optim.clip_gradients()",
}


# Functions with a rule that returns pairs, and how errors call them.
RULED: dict[str, tuple[Any, str]] = {
    "_adopt": (arrays.same, "asarray()"),
    "_diagonal": (arrays.diagonal, "diagonal()"),
    "_diagonal_matrix": (arrays.diagonal_matrix, "diag()"),
    "_diagonal_view": (arrays.diagonal_view, "diagonal()"),
    "_convolve": (nn.convolve, "a convolution"),
    "_convolve_weight_gradient": (nn.convolve_weight_gradient, "the gradient of a convolution"),
    "_dropout": (nn.dropout, "dropout()"),
    "_embedding": (nn.embedding, "embedding()"),
    "_activate": (nn.activate, "an activation"),
    "_gather": (arrays.gather, "take_along_axis()"),
    "_l2_norm": (nn.l2_norm, "l2_norm()"),
    "_matmul": (linear.matmul, "matmul()"),
    "_pool_average": (nn.pool_average, "avg_pool()"),
    "_resample": (nn.resample, "interpolate()"),
    "_rows_by_index": (arrays.rows_by_index, "take()"),
    "_scale_tokens": (nn.scale_tokens, "attention_temperature()"),
    "_take_at": (arrays.take_at, "an index"),
    "_triangle": (arrays.triangle, "tril()"),
}
# Functions with a rule for all operands at once.
JOINT: dict[str, tuple[Any, str]] = {
    "_bias_activate": (nn.bias_activate, "bias_activation()"),
    "_concat": (arrays.concat, "concat()"),
    "_gate": (nn.gate, "a gated activation"),
    "_merge_qkv": (nn.merge_qkv, "merge_qkv()"),
    "_norm": (nn.norm, "a norm"),
    "_permute": (nn.permute, "permute()"),
    "_pointwise_loss": (nn.pointwise_loss, "a loss"),
    "_pope": (nn.pope, "pope()"),
    "_qr": (linear.qr, "qr()"),
    "_rope": (nn.rope, "rope()"),
    "_unpermute": (nn.unpermute, "unpermute()"),
}
# Functions with an option that a handler deals with.
OPTIONAL: dict[str, Rule] = {
    "_elementwise": Rule(writes.elementwise_pairs, None, False, writes.compute, "out", 2),
    "_linear": Rule(linear.linear, "linear()", False, nn.activated_layer, "activation", 5),
    "_reduce": Rule(reductions.reduce, None, False, reduced.reduce, "out", 6),
    "_scan": Rule(reductions.scan, None, False, reduced.scan, "out", 5),
    "_softmax": Rule(nn.softmax, "softmax()", False, reduced.softmax, "out", 5),
}
# Functions with a handler of their own.
OWN: dict[str, Handler] = {
    "_add_at": writes.add_at,
    "_attention": nn.attention,
    "_bincount": reduced.bincount,
    "_compress": arrays.compress,
    "_cross_entropy": nn.cross_entropy,
    "_eigen": reduced.eigen,
    "_gemm": nn.gemm,
    "_grouped_product": nn.grouped_product,
    "_histogram": reduced.histogram,
    "_pool_largest": nn.pool_largest,
    "_put_at": writes.put_at,
    "_put_where": writes.put_where,
    "_route": nn.route,
    "_scatter": writes.scatter,
    "_sort": arrays.sort,
    "_split_qkv": nn.split_qkv,
    "_svd": reduced.svd,
    "_topk": nn.topk,
}
# Functions that take arrays and compute nothing with their elements.
NEUTRAL = frozenset({
    "_any_capture", "_can_cast", "_dtype", "_extent", "_forget", "_from_numpy", "_has_product",
    "_layer_operands", "_log_warning", "_memory_use", "_next_order", "_note", "_note_checked",
    "_note_joint", "_product_plan", "_promote_types", "_recordings", "_result_type", "_sequence",
    "_whole_sequence", "_with_product",
})  # fmt: skip


def _table() -> dict[Any, Handler | Rule]:
    """Function to rule or handler. What is in no list is refused, so that a new function cannot
    lose a gradient in silence."""
    table: dict[Any, Handler | Rule] = {}
    for rows in (OPTIONAL, OWN):
        for name, handled in rows.items():
            table[getattr(_core, name)] = handled
    for joint, ruled in ((False, RULED), (True, JOINT)):
        for name, (rule, said) in ruled.items():
            table[getattr(_core, name)] = Rule(rule, said, joint)
    for name, said in WRITING.items():
        function = getattr(_core, name)
        table[function] = writes.writing(function, said)
    for name in CONSTANT:
        function = getattr(_core, name)
        table[function] = constant_handler(function)
    known = {*CONSTANT, *NEUTRAL, *OPTIONAL, *OWN, *RULED, *JOINT, *WRITING}
    for name, function in vars(_core).items():
        if not isinstance(function, BuiltinFunctionType) or name in known or name[0] != "_":
            continue
        if not name.startswith(("_random_", "_set_", "_unrecorded", "_is_")):
            table[function] = refused_handler(function, REFUSED.get(name, f"{name}()"))
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
    rules: dict[str, Any] = {
        "_broadcast": arrays.same,
        "astype": arrays.same,
        "copy": arrays.same,
        "reshape": arrays.reshape,
        "to": arrays.to,
        "to_device": arrays.to,
        "transpose": arrays.transpose,
        "view": arrays.view,
    }
    for name, rule in rules.items():
        table[_native(getattr(Array, name))] = Rule(rule, f"{name.lstrip('_')}()")
    table[_native(vars(Array)["T"].fget)] = Rule(arrays.transpose, "T")
    for name in ("sum", "prod", "mean"):
        table[_native(getattr(Array, name))] = reduced.sum_method(name)
    for name in ("max", "min"):
        table[_native(getattr(Array, name))] = reduced.extreme_method(name)
    for name in ("var", "std"):
        table[_native(getattr(Array, name))] = reduced.spread_method(name)
    for name in ("cumsum", "cumprod"):
        table[_native(getattr(Array, name))] = reduced.scan_method(
            f"cumulative_{name.removeprefix('cum')}"
        )
    return table


def _functions() -> dict[Any, Handler | Rule]:
    """Functions of Python whose gradient is simpler as a whole."""
    table: dict[Any, Handler | Rule] = {}
    for name in ("cholesky", "det", "inv", "solve"):
        table[getattr(kw.linalg, name)] = Rule(getattr(linear, name), f"linalg.{name}()")
    table[kw.linalg.slogdet] = Rule(linear.slogdet, "linalg.slogdet()", True)
    for name in ("gru", "lstm"):
        table[getattr(kw.nn, name)] = nn.recurrent(name)
    for name in ("convolve", "correlate", "interp", "polyval"):
        table[getattr(kw, name)] = getattr(vectors, name)
    table[kw.nn.batch_norm] = Rule(nn.batch_norm, "batch_norm()", True)
    return table


def install() -> None:
    """Tells the extension the rules and handlers; once."""
    _set_handlers(_table(), writes.ELEMENTWISE, writes.in_place, _allow_launch)
