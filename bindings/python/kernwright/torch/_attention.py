"""Scaled dot product attention for torch, and a switch that sends torch's own calls to it."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch.nn import functional

import kernwright as kw
from kernwright.errors import InvalidArgument
from kernwright.torch._modules import fits
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["AttentionSwitch", "scaled_dot_product_attention", "switch_attention"]

_HALF = (torch.float16, torch.bfloat16)
_MOST_DIM = 256


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """softmax(scale * query key^T + attn_mask) value: torch.nn.functional's, with its gradient.

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev), any strides, E and
    Ev at most 256; float16 or bfloat16, summed in float32, or float32 without TF32. The result is
    row-major. With `enable_gqa` key and value may have fewer heads, a divisor of the query's. A
    mask, bool or numbers that are added, broadcasts and gets no gradient. A query that sees no key
    gives 0. In torch.autocast the three become of its dtype, as in torch.

    No dropout: torch's draws from torch's generator. Raises InvalidArgument for it, for a mask that
    requires a gradient, and as kernwright.nn.attention() does; kw.nn has windows, caps and sinks.

    >>> import torch, kernwright.torch as kt
    >>> x = torch.ones(1, 2, 3, 8, dtype=torch.bfloat16)
    >>> kt.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    torch.Size([1, 2, 3, 8])
    """
    if dropout_p != 0:
        raise InvalidArgument(
            f"dropout_p is {dropout_p}: the attention of kernwright.torch has no dropout, which is "
            "torch's, and draws from its generator"
        )
    if attn_mask is not None and attn_mask.requires_grad:
        raise InvalidArgument(
            "attn_mask requires a gradient, which kernwright.torch does not compute: call "
            "torch.nn.functional.scaled_dot_product_attention(), or pass attn_mask.detach() if the "
            "mask is not trained"
        )
    query, key, value = (_in_autocast(x) for x in (query, key, value))
    shape = query.shape
    if query.ndim == 4 and key.ndim == 4 and value.ndim == 4:
        _require_groups(query, key, enable_gqa)
        made, _ = _forward(query, key, value, attn_mask, is_causal, scale)
        return made
    if not (query.ndim == key.ndim == value.ndim and query.ndim >= 2):
        raise InvalidArgument(
            f"Incompatible dimensions: query has shape {tuple(shape)}, key {tuple(key.shape)}, "
            f"value {tuple(value.shape)}; they have the axes (..., heads, tokens, head_dim)"
        )
    if attn_mask is not None and attn_mask.ndim > 3:
        # Axes in front of the heads become one; of the mask they are that many, too.
        attn_mask = attn_mask.expand(*shape[:-3], *attn_mask.shape[-3:]).flatten(0, -4)
    query, key, value = (_four_axes(x) for x in (query, key, value))
    _require_groups(query, key, enable_gqa)
    made, _ = _forward(query, key, value, attn_mask, is_causal, scale)
    return made.reshape(*shape[:-1], made.shape[-1])


class AttentionSwitch:
    """What switch_attention() returned; undo() or the end of a `with` turns it back.

    >>> import torch, kernwright.torch as kt
    >>> switch = kt.switch_attention()
    >>> switch.undo()
    """

    def __init__(self) -> None:
        self._on = True

    def undo(self) -> None:
        """Gives torch.nn.functional its own function back, once all switches are undone."""
        if self._on:
            self._on = False
            _Switched.count -= 1
            if _Switched.count == 0:
                functional.scaled_dot_product_attention = _TORCHS

    def __enter__(self) -> AttentionSwitch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


def switch_attention() -> AttentionSwitch:
    """Lets torch.nn.functional.scaled_dot_product_attention be ours where ours does what is asked.

    For the whole process, until undo() or the end of a `with`: models call that name as a function,
    beyond the reach of replaced modules. Models that took it with `from ... import` before keep
    torch's. Taken are calls of float16 and bfloat16 with head dimensions up to 256, without dropout
    and without a mask that requires a gradient, of equal batches, on a GPU (or on the CPU where the
    simulated device is all there is). All others go to torch's own. Call it before torch.compile().

    >>> import torch, kernwright.torch as kt
    >>> x = torch.ones(1, 2, 3, 8, dtype=torch.float16)
    >>> with kt.switch_attention():
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().item()
    48.0
    """
    functional.scaled_dot_product_attention = _taken_or_torchs
    _Switched.count += 1
    return AttentionSwitch()


class _Switched:
    count = 0


def _is_torchs(function: Any) -> Any:
    """torch's own function, also where this module is loaded a second time under a switch."""
    return getattr(function, "_torchs", function)


_TORCHS = _is_torchs(functional.scaled_dot_product_attention)


def _taken_or_torchs(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    function = _TORCHS
    if dropout_p == 0 and _takes(query, key, value, attn_mask, is_causal, enable_gqa):
        function = scaled_dot_product_attention
    made: torch.Tensor = function(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return made


_taken_or_torchs._torchs = _TORCHS  # type: ignore[attr-defined]


def _takes(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, enable_gqa: bool) -> bool:
    """Whether ours does what is asked, and is meant for it."""
    tensors = (q, k, v)
    if any(type(x) not in (torch.Tensor, torch.nn.Parameter) or x.ndim < 3 for x in tensors):
        return False
    if not all(fits(x) and x.device == q.device for x in tensors):
        return False
    dtypes = {_in_autocast_dtype(x) for x in tensors}
    alike = len(dtypes) == 1 and dtypes.pop() in _HALF and q.ndim == k.ndim == v.ndim
    if not alike or max(q.shape[-1], v.shape[-1]) > _MOST_DIM:
        return False
    same = (
        q.shape[:-3] == k.shape[:-3] == v.shape[:-3]
        and q.shape[-1] == k.shape[-1]
        and k.shape[-3:-1] == v.shape[-3:-1]
    )
    heads, kv_heads = q.shape[-3], k.shape[-3]
    grouped = heads == kv_heads or (enable_gqa and kv_heads > 0 and heads % kv_heads == 0)
    return same and grouped and (mask is None or (not is_causal and _takes_mask(q, k, mask)))


def _takes_mask(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> bool:
    whole = (*q.shape[:-1], k.shape[-2])
    fits = mask.ndim <= len(whole) and all(
        extent in (1, whole[i - mask.ndim]) for i, extent in enumerate(mask.shape)
    )
    kinds = (torch.bool, torch.float32, _in_autocast_dtype(q))
    return fits and mask.dtype in kinds and not mask.requires_grad and mask.device == q.device


def _in_autocast_dtype(x: torch.Tensor) -> torch.dtype:
    place = x.device.type
    if torch.is_autocast_enabled(place) and x.dtype.is_floating_point:
        return torch.get_autocast_dtype(place) if x.dtype != torch.float64 else x.dtype
    return x.dtype


def _in_autocast(x: torch.Tensor) -> torch.Tensor:
    return x.to(_in_autocast_dtype(x))


def _four_axes(x: torch.Tensor) -> torch.Tensor:
    return x.reshape((1,) * (4 - x.ndim) + x.shape) if x.ndim < 4 else x.flatten(0, -4)


def _require_groups(query: torch.Tensor, key: torch.Tensor, enable_gqa: bool) -> None:
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise InvalidArgument(
            f"Incompatible dimensions: the query has {query.shape[1]} heads, the key "
            f"{key.shape[1]}; enable_gqa=True lets heads share keys"
        )


def _run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    def run(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return kw.nn.attention(
            q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=True, return_lse=True
        )

    return call(run, q, q, k, v, mask)


def _run_backward(
    dy: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def run(dy: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, mask: Any) -> Any:
        return kw.nn.attention_backward(
            dy, q, k, v, out, lse, mask, is_causal=causal, scale=scale, enable_gqa=True
        )

    return call(run, q, dy, q, k, v, out, lse, mask)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output, mask)


def _gradient(ctx: Any, dy: torch.Tensor, _: Any) -> Any:
    q, k, v, out, lse, mask = ctx.saved_tensors
    made = _backward(dy, q, k, v, out, lse, mask, ctx.causal, ctx.scale)
    return (*made, None, None, None)


_forward = define(
    "attention",
    _run,
    lambda q, k, v, mask, causal, scale: (
        empty(q, (*q.shape[:-1], v.shape[-1])),
        empty(q, q.shape[:-1], torch.float32),
    ),
)
_backward = define(
    "attention_backward",
    _run_backward,
    lambda dy, q, k, v, *_: (empty(q), empty(k), empty(v)),
)
differentiate("attention", _gradient, _setup)
