"""Modules made of modules: one after the other, and experts of which each token takes a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import ArgumentError
from kernwright.nn import _experts
from kernwright.nn._activations import Activation, product_activation
from kernwright.nn._modules import settings
from kernwright.nn._modules.linear import Linear, seeds
from kernwright.nn._modules.module import Module
from kernwright.nn.init import _functions as init

__all__ = ["Experts", "Sequential"]


class Sequential(Module):
    """Layers one after the other: modules and functions of one array. Their parameters have the
    names "0.weight", "1.weight", ..., as in torch.

    >>> net = kw.nn.Sequential(kw.nn.Linear(2, 8), kw.nn.silu, kw.nn.Linear(8, 1))
    >>> net(kw.ones((5, 2))).shape, len(net), [name for name, _ in net.named_parameters()][:2]
    ((5, 1), 3, ['0.weight', '0.bias'])
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise ArgumentError(f"layer {i} is a module or a function, got {layer!r:.60}")
            setattr(self, str(i), layer)
        self._count = len(layers)

    def __call__(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return (vars(self)[str(i)] for i in range(self._count))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return list(self)[index]


def _require_route(
    route: dict[str, Any], num_experts: int, taken: int, device: Any
) -> dict[str, Any]:
    """Options that kw.nn.route() takes for so many experts."""
    for name in ("groups", "groups_kept"):
        if name in route:
            settings.extent(route[name], name)
    if "scale" in route:
        settings.number(route["scale"], "scale")
    if "renormalize" in route:
        settings.flag(route["renormalize"], "renormalize")
    no_tokens = kernwright.zeros((0, num_experts), "float32", device=device)
    _experts.route(no_tokens, taken, **route)
    return route


class Experts(Module):
    """A mixture of experts: each token takes `num_experts_per_token` gated networks, chosen and
    weighted by kw.nn.route() of `gate`(x).

    gate_up_proj (experts, 2 hidden_dim, dim) and down_proj (experts, dim, hidden_dim), as
    kw.nn.grouped_linear() takes them; `dtype` is float16, bfloat16 or float32. `route` are options
    of kw.nn.route(): scores, renormalize, groups, ...

    >>> experts = kw.nn.Experts(16, 32, 4, 2, seed=1)
    >>> experts(kw.ones((3, 16), "bfloat16")).shape
    (3, 16)
    """

    def __init__(
        self, dim: int, hidden_dim: int, num_experts: int, num_experts_per_token: int, *,
        activation: Activation = "silu", dtype: Any = "bfloat16", seed: int | None = None,
        device: Any = None, **route: Any,
    ) -> None:  # fmt: skip
        dim, hidden_dim = settings.extent(dim, "dim"), settings.extent(hidden_dim, "hidden_dim")
        num_experts = settings.extent(num_experts, "num_experts")
        taken = settings.extent(num_experts_per_token, "num_experts_per_token", most=num_experts)
        self.num_experts_per_token = taken
        self.activation = product_activation("activation", activation, grouped=True)
        self._route = _require_route(route, num_experts, taken, device)
        of_gate, of_up, of_down = seeds(seed, 3)
        options = {"dtype": dtype, "device": device}
        self.gate = Linear(dim, num_experts, False, seed=of_gate, **options)
        settings.require_float(self.gate.weight, ("float16", "bfloat16", "float32"))
        bound, hidden_bound = (1.0 / math.sqrt(each) for each in (dim, hidden_dim))
        up, down = (num_experts, 2 * hidden_dim, dim), (num_experts, dim, hidden_dim)
        self.gate_up_proj = init.uniform(up, -bound, bound, seed=of_up, **options)
        self.down_proj = init.uniform(down, -hidden_bound, hidden_bound, seed=of_down, **options)

    def __call__(self, x: Any) -> Array:
        tokens = x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))
        weights, chosen = _experts.route(
            self.gate(tokens), self.num_experts_per_token, **self._route
        )
        permuted = _experts.permute(tokens, chosen, self.gate_up_proj.shape[0])
        hidden = _experts.grouped_linear(
            permuted.rows, self.gate_up_proj, permuted.offsets, gate=self.activation
        )
        rows = _experts.grouped_linear(hidden, self.down_proj, permuted.offsets)
        return _experts.unpermute(rows, permuted.positions, weights).reshape(x.shape)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        experts, dim, hidden = self.down_proj.shape
        return f"{dim}, {hidden}, {experts} experts, {self.num_experts_per_token} per token"
