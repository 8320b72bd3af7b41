"""Pieces that families share: fused projections, attention, gated layers, experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import kernwright as kw
from kernwright._core import Array, _activations, _gate
from kernwright._core import _recordings as recordings
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._step import Step
from kernwright.llm.models._rotary import RotaryTables
from kernwright.nn import Module
from kernwright.nn._linear import normed_linear
from kernwright.nn._scaled_weight import ScaledWeight

__all__ = [
    "MLP",
    "Attention",
    "Embedding",
    "Experts",
    "GatedMLP",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "RotaryTables",
    "Unread",
]


FEW_ROWS = 64
"""As many rows take the product's kernel for few rows, which has no gate."""


class Unread(NamedTuple):
    """A parameter that llm.load() fills: its shape, and its dtype where that is not the model's.

    >>> from kernwright import llm
    >>> llm.models.Linear(4, 8).weight
    Unread(shape=(8, 4), dtype=None)
    """

    shape: tuple[int, ...]
    dtype: str | None = None


class Wide:
    """A layer between residuals of float32 and products of 16 bits, once it is told to be."""

    _narrow: str | None = None

    def widen(self, dtype: str) -> None:
        """Residuals are float32 from now on, and what goes into products is of `dtype`."""
        self._narrow = dtype

    def _narrowed(self, x: Array) -> Array:
        return x if self._narrow is None else x.astype(self._narrow, copy=False)


class Parts:
    """The weights of several projections where files keep them in different formats."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = dict(weights)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k) of all together."""
        shapes = [each.shape for each in self.weights.values()]
        return sum(shape[0] for shape in shapes), shapes[0][1]


class Linear(Wide, Module):
    """x @ weight.T + bias. Several projections of the same x are one: `parts` has their widths.

    `weight` (out_features, in_features), `bias` (out_features,). split() gives the parts of the
    result, in order, as views.
    """

    weight: Any
    bias: Any
    _adapters: Any = None

    def __init__(
        self, in_features: int, parts: int | Mapping[str, int], bias: bool = False
    ) -> None:
        self._parts = dict(parts) if isinstance(parts, Mapping) else {"": parts}
        width = sum(self._parts.values())
        self._extents = width, in_features
        self.weight = Unread((width, in_features))
        self.bias = Unread((width,)) if bias else None

    def __call__(self, x: Array, norm: Module | None = None, **options: Any) -> Array:
        """The product with norm(x), or with x: one row and its RMSNorm may be one kernel. `options`
        are those of kw.nn.linear(): activation, residual, ..."""
        if norm is not None:
            if self._fits(norm, x):
                return self._product(x, norm, **options)
            x = norm(x)
        if self._narrow is not None:
            x, wide = self._narrowed(x), options.pop("residual", None)
            if wide is not None:
                return wide + self(x, **options)  # type: ignore[no-any-return]
        if self._adapters is not None and self._adapters.is_wanted:
            return self._adapters.apply(self._product, x, **options)  # type: ignore[no-any-return]
        return self._product(x, **options)

    def _fits(self, norm: Module, x: Array) -> bool:
        """Whether the product of x, of one row, may take its norm."""
        adapts = self._adapters is not None and self._adapters.is_wanted
        if x.shape[0] != 1 or adapts or isinstance(self.weight, Parts) or recordings():
            return False
        wide = self._narrow is not None
        return isinstance(norm, RMSNorm) and not wide and norm.weight.dtype == x.dtype

    def _product(self, x: Array, norm: Any = None, **options: Any) -> Array:
        weight: Any = self.weight
        if isinstance(weight, Parts):
            return kw.concat(self._products(x, weight), axis=-1)
        if isinstance(weight, ScaledWeight):
            weight, options["scale"] = weight.codes, weight.scale
        if norm is not None:
            return normed_linear(x, norm.weight, norm._eps, weight, self.bias, **options)
        return kw.nn.linear(x, weight, self.bias, **options)

    def gated(self, activation: str, x: Array, norm: Module | None = None) -> Array:
        """activation(first half) * second half of the product. Many rows take one kernel, and so
        may one row and its norm."""
        if norm is not None and self._fits(norm, x):
            return self._product(x, norm, gate=activation)
        adapts = self._adapters is not None and self._adapters.is_wanted
        if adapts or not isinstance(self.weight, Array) or x.shape[0] <= FEW_ROWS:
            return gate(activation, self(x, norm))
        x = x if norm is None else norm(x)
        return kw.nn.linear(x, self.weight, self.bias, gate=activation)  # type: ignore[arg-type]

    def split(self, x: Array, norm: Module | None = None) -> list[Array]:
        """The parts of the product, (..., width) each."""
        if isinstance(self.weight, Parts) and self._adapters is None:
            return self._products(x if norm is None else norm(x), self.weight)
        y, made, begin = self(x, norm), [], 0
        for width in self._parts.values():
            made.append(y[..., begin : begin + width])
            begin += width
        return made

    def _products(self, x: Array, parts: Parts) -> list[Array]:
        return [
            kw.nn.linear(x, weight, None if self.bias is None else self.bias[self.rows_of(name)])
            for name, weight in parts.weights.items()
        ]

    def numbers(self, like: Array) -> Array:
        """The weight (out_features, in_features) of a layer without bias as numbers of the dtype
        of an array on its device, also of few bits."""
        if isinstance(self.weight, Array):
            return self.weight.astype(like.dtype.name, copy=False)
        inputs = kw.eye(self._extents[1], dtype=like.dtype.name, device=like.device)
        return self._product(inputs).mT

    @property
    def adapters(self) -> Any:
        """The slots for adapters where tokens of the step may have some, else None."""
        wanted = self._adapters is not None and self._adapters.is_wanted
        return self._adapters if wanted else None

    def set_adapters(self, adapters: Any) -> None:
        """Gives the layer slots for adapters, see llm._adapters."""
        self._adapters = adapters

    @property
    def extents(self) -> tuple[int, int]:
        """(out_features, in_features)"""
        return self._extents

    def part_names(self) -> list[str]:
        """The names of the parts, in order."""
        return list(self._parts)

    def rows_of(self, part: str) -> slice:
        """The rows of the weight that one part has."""
        widths = list(self._parts.values())
        at = list(self._parts).index(part)
        return slice(sum(widths[:at]), sum(widths[: at + 1]))

    def extra_repr(self) -> str:
        """The extents that repr() shows."""
        return "in_features={1}, out_features={0}".format(*self._extents)


class Embedding(Wide, Module):
    """Rows of a table by their numbers, times `scale`: weight (tokens, dim)."""

    weight: Any

    def __init__(self, count: int, dim: int, scale: float = 1.0) -> None:
        self.weight = Unread((count, dim))
        self._scale = scale

    def __call__(self, ids: Array) -> Array:
        x: Array = kw.nn.embedding(ids, self.weight, scale=self._scale)
        return x if self._narrow is None else x.astype("float32")


class RMSNorm(Wide, Module):
    """x / sqrt(mean(x^2) + eps) * weight."""

    weight: Any

    def __init__(self, dim: int, eps: float, dtype: str | None = None) -> None:
        self.weight = Unread((dim,), dtype)
        self._eps = eps

    def __call__(self, x: Array, **options: Any) -> Any:
        """`options` are those of kw.nn.rms_norm(): residual, ..."""
        return self._narrowed(kw.nn.rms_norm(x, self.weight, self._eps, **options))


class LayerNorm(Module):
    """(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias."""

    weight: Any
    bias: Any

    def __init__(self, dim: int, eps: float, bias: bool = True) -> None:
        self.weight = Unread((dim,))
        self.bias = Unread((dim,)) if bias else None
        self._eps = eps

    def __call__(self, x: Array, **options: Any) -> Any:
        """`options` are those of kw.nn.layer_norm(): residual, ..."""
        return kw.nn.layer_norm(x, self.weight, self.bias, self._eps, **options)


class Attention(Module):
    """Queries, keys and values of one product, attention over the step's sequences, the way back.

    `qk_norm`: an RMS norm of queries and keys (q_norm, k_norm), "heads": of each head, "all": of
    all heads together. `window`: tokens that a token sees; `scale`: 1 / sqrt(head_dim) without one;
    `soft_cap`, `sinks`: as kw.nn.attention() has them.
    """

    sinks: Any

    def __init__(
        self, config: Config, layer: int, *, rope: RotaryTables | None, bias: bool = False,
        output_bias: bool = False, qk_norm: Literal["heads", "all"] | None = None,
        norm_dtype: str | None = None,
        window: int | None = None, scale: float | None = None, soft_cap: float | None = None,
        sinks: bool = False,
    ) -> None:  # fmt: skip
        self._layer, self._rope = layer, rope
        self._heads, self._kv_heads = config.num_heads, config.num_kv_heads
        self._window, self._scale, self._soft_cap = window, scale, soft_cap
        self._eps, self._head_dim = config.norm_eps, config.head_dim
        width, kv_width = self._heads * config.head_dim, self._kv_heads * config.head_dim
        self.qkv = Linear(config.hidden_size, {"q": width, "k": kv_width, "v": kv_width}, bias)
        self.out = Linear(width, config.hidden_size, output_bias)
        self._qk_norm = qk_norm
        if qk_norm is not None:
            of_q, of_k = (width, kv_width) if qk_norm == "all" else (config.head_dim,) * 2
            self.q_norm = RMSNorm(of_q, config.norm_eps, norm_dtype)
            self.k_norm = RMSNorm(of_k, config.norm_eps, norm_dtype)
        self.sinks = Unread((self._heads,), "float32") if sinks else None

    def cache_layer(self) -> tuple[int, int]:
        """(kv_heads, head_dim) of what is kept of a token."""
        return self._kv_heads, self._head_dim

    def __call__(self, x: Array, step: Step, norm: Module | None = None, **options: Any) -> Array:
        """Attention of norm(x), or of x (tokens, hidden); `options` go to the last product:
        residual."""
        q, k, v = self.qkv.split(x, norm)
        norms = {}
        if self._qk_norm == "all":
            q, k = self.q_norm(q), self.k_norm(k)
        elif self._qk_norm == "heads":
            norms = {"q_norm": self.q_norm.weight, "k_norm": self.k_norm.weight}
        y = step.attend(
            self._layer, _heads(q, self._heads), _heads(k, self._kv_heads),
            _heads(v, self._kv_heads),
            rope=self._rope.on(x.device, step.longest) if self._rope else None, eps=self._eps,
            scale=self._scale, window=self._window, soft_cap=self._soft_cap, sinks=self.sinks,
            **norms,
        )  # fmt: skip
        return self.out(y.reshape((x.shape[0], -1)), **options)


def _heads(x: Array, count: int) -> Array:
    """(tokens, heads, head_dim) of (tokens, width), without a copy."""
    return x.reshape((x.shape[0], count, x.shape[1] // count))


def normed(layer: Module, norm: Module, x: Array, *more: Any, **options: Any) -> Array:
    """layer(norm(x), ...): layers that begin with one product take the norm there. One that has a
    __call__() of its own gets what is normed."""
    call: Any = layer
    if type(layer).__call__ in (Attention.__call__, GatedMLP.__call__, MLP.__call__):
        options["norm"] = norm
    else:
        x = norm(x)
    made: Array = call(x, *more, **options)
    return made


def gate(activation: str, y: Array) -> Array:
    """activation(first half) * second half of the last axis."""
    return _gate(activation, y, None)


class GatedMLP(Module):
    """down(activation(gate(x)) * up(x)), gate and up as one product."""

    def __init__(
        self, config: Config, *, bias: bool = False, intermediate_size: int | None = None
    ) -> None:
        width = intermediate_size or config.intermediate_size
        self._activation = config.activation
        self.gate_up = Linear(config.hidden_size, {"gate": width, "up": width}, bias)
        self.down = Linear(width, config.hidden_size, bias)

    def __call__(self, x: Array, norm: Module | None = None, **options: Any) -> Array:
        return self.down(self.gate_up.gated(self._activation, x, norm), **options)


class MLP(Module):
    """down(activation(up(x)))."""

    def __init__(self, config: Config, *, bias: bool) -> None:
        self._activation = config.activation
        self.up = Linear(config.hidden_size, config.intermediate_size, bias)
        self.down = Linear(config.intermediate_size, config.hidden_size, bias)

    def __call__(self, x: Array, norm: Module | None = None, **options: Any) -> Array:
        return self.down(self.up(x, norm, activation=self._activation), **options)


def gate_up_rows(part: str, width: int) -> slice:
    """The rows of a part, "gate" or "up", in a weight that has `width` of each."""
    return {"gate": slice(0, width), "up": slice(width, 2 * width)}[part]


class Experts(Module):
    """A mixture: each token goes through `top_k` of the gated layers that the router scores best.

    gate_up (experts, 2 * width, hidden), down (experts, hidden, width). `renormalise`: the weights
    of the chosen ones sum up to 1. scale, groups and groups_kept are those of kw.nn.route().
    """

    gate_up: Any
    down: Any

    def __init__(
        self, config: Config, *, count: int, top_k: int, width: int, renormalise: bool = True,
        scale: float = 1.0, groups: int = 1, groups_kept: int = 1,
    ) -> None:  # fmt: skip
        if not 0 < top_k <= count:
            raise ModelError(f"{config.source}: {top_k} of {count} experts cannot be chosen")
        if _activations()[config.activation] < 2:
            raise ModelError(f"{config.source}: experts do not take {config.activation}")
        self._count, self._top_k = count, top_k
        self._routing: dict[str, Any] = {
            "renormalize": renormalise, "scale": scale, "groups": groups,
            "groups_kept": groups_kept,
        }  # fmt: skip
        self._activation: Any = config.activation
        self._width = width
        self.router = Linear(config.hidden_size, count)
        self.gate_up = Unread((count, 2 * width, config.hidden_size))
        self.down = Unread((count, config.hidden_size, width))

    def rows_of(self, part: str) -> slice:
        """The rows of an expert's gate_up that one part has."""
        return gate_up_rows(part, self._width)

    @property
    def count(self) -> int:
        """How many experts there are."""
        return self._count

    @property
    def top_k(self) -> int:
        """How many experts a token goes through."""
        return self._top_k

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        return self.mix(x, *self.choose(x), self.gate_up, self.down, residual)

    def choose(self, x: Array) -> tuple[Array, Array]:
        """The weights and the numbers of each token's experts, (tokens, top_k)."""
        weights, experts = kw.nn.route(self.router(x), self._top_k, **self._routing)
        return weights, experts

    def mix(
        self, x: Array, weights: Array, experts: Array, gate_up: Array, down: Array,
        residual: Array | None,
    ) -> Array:  # fmt: skip
        """The weighted sum of what experts, numbers into gate_up and down, make of each token."""
        chosen = kw.nn.permute(x, experts, gate_up.shape[0])
        y = kw.nn.grouped_linear(chosen.rows, gate_up, chosen.offsets, gate=self._activation)
        y = kw.nn.grouped_linear(y, down, chosen.offsets)
        y = kw.nn.unpermute(y, chosen.positions, weights)
        return y if residual is None else y + residual
