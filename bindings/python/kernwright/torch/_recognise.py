"""Modules of other packages with the formulas of ours: found by their parts, proven by numbers.

Models of transformers have their own classes for RMS norms (a weight, variance_epsilon or eps) and
for gated layers (gate_proj, up_proj, down_proj, act_fn). Names promise nothing: there are norms
that multiply by 1 + weight. So what looks like one is called on random numbers, and taken only
where it gives what the formula does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kernwright.torch import _gates, _norm
from kernwright.torch._modules import fits

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": functools.partial(nn.functional.gelu, approximate="tanh"),
    "relu": nn.functional.relu,
}


def looks_like(module: nn.Module) -> str | None:
    """ "RMSNorm" or "MLP" where the parts are there, else None."""
    if getattr(type(module), "_runs_on_kernels", False):
        return None
    weight = getattr(module, "weight", None)
    if type(module).__name__.endswith("RMSNorm") and isinstance(weight, nn.Parameter):
        return "RMSNorm" if weight.ndim == 1 and _epsilon(module) is not None else None
    parts = (getattr(module, name, None) for name in ("gate_proj", "up_proj", "down_proj"))
    if all(type(part) is nn.Linear for part in parts) and callable(getattr(module, "act_fn", None)):
        return "MLP"
    return None


def recognised(module: nn.Module) -> type[nn.Module] | None:
    """A subclass of the module's class, run by kernels, where its formula is ours."""
    cls: Any = type(module)
    if looks_like(module) == "RMSNorm":
        return _derived(cls, "rms", _epsilon(module)) if _is_rms(module) else None
    activation = _activation(module)
    if activation is None or not _is_gated(module, activation):
        return None
    return _derived(cls, activation, None)


@functools.cache
def _derived(cls: Any, kind: str, eps: float | None) -> type[nn.Module]:
    def norm(self: Any, x: torch.Tensor) -> Any:
        if not fits(x):
            return cls.forward(self, x)
        return _norm.rms_norm(x, self.weight.shape, self.weight, eps)

    def gated(self: Any, x: torch.Tensor) -> Any:
        if not fits(x):
            return cls.forward(self, x)
        return self.down_proj(_gates._gate(self.gate_proj(x), self.up_proj(x), kind))

    def reduce(self: Any, protocol: Any) -> Any:
        return _empty, (cls, kind, eps), self.__dict__

    members = {
        "forward": norm if kind == "rms" else gated,
        "__reduce_ex__": reduce,
        "_runs_on_kernels": True,
        "__doc__": f"{cls.__qualname__} by kernwright.torch.",
        "__module__": __name__,
        "__qualname__": cls.__qualname__,
    }
    return type(cls.__name__, (cls,), members)


def _empty(cls: Any, kind: str, eps: float | None) -> nn.Module:
    """The beginning of copies and pickles of such a module."""
    derived: Any = _derived(cls, kind, eps)
    made: nn.Module = derived.__new__(derived)
    return made


def _epsilon(module: nn.Module) -> float | None:
    for name in ("variance_epsilon", "eps", "epsilon"):
        value = getattr(module, name, None)
        if isinstance(value, float):
            return value
    return None


def _random(features: int, like: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, features, generator=generator).to(like.device, like.dtype)


def _agree(module: nn.Module, x: torch.Tensor, formula: Callable[..., torch.Tensor]) -> bool:
    """In the dtype of the module, with room for where it rounds in between."""
    try:
        with torch.no_grad():
            got, want = module(x), formula(x)
    except Exception:
        return False
    if not isinstance(got, torch.Tensor) or got.shape != want.shape or got.dtype != x.dtype:
        return False
    off = float((got.double() - want.double()).norm())
    scale = float(want.double().norm())
    return off <= 4 * torch.finfo(x.dtype).eps * scale and scale > 0


def _is_rms(module: Any) -> bool:
    def formula(x: torch.Tensor) -> torch.Tensor:
        wide = x.double()
        return wide / (wide.square().mean(-1, keepdim=True) + _epsilon(module)).sqrt() * weight

    weight = module.weight.detach().double()
    if not _is_testable(module.weight):
        return False
    # A small x tells whether eps is added where we add it.
    x = _random(weight.shape[0], module.weight)
    return _agree(module, x, formula) and _agree(module, x * 1e-3, formula)


def _activation(module: Any) -> str | None:
    weight = module.gate_proj.weight
    if not _is_testable(weight):
        return None
    x = _random(64, weight)
    for name, function in ACTIVATIONS.items():
        if _agree(module.act_fn, x, lambda x, function=function: function(x.double())):
            return name
    return None


def _is_gated(module: Any, name: str) -> bool:
    def formula(x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = module.down_proj(
            ACTIVATIONS[name](module.gate_proj(x)) * module.up_proj(x)
        )
        return made

    return _agree(module, _random(module.gate_proj.in_features, module.gate_proj.weight), formula)


def _is_testable(weight: torch.Tensor) -> bool:
    return weight.device.type in ("cpu", "cuda") and weight.is_floating_point()
