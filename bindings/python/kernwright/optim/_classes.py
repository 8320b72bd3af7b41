"""Optimisers that keep their states, and count their steps on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.optim import _functions
from kernwright.optim._functions import (
    Following,
    Tensors,
    momentum_settings,
    not_negative,
    rate_of,
    tensors,
    two_betas,
)
from kernwright.random._sequence import whole

__all__ = ["SGD", "Adam", "AdamW", "Lion"]


class _Optimizer:
    """Parameters, their states, and the count of steps.

    `lr` may be set between steps; as an array of one float32 it is read when the kernel runs, so
    that a graph follows it. A captured step() counts with each replay.
    """

    _state_names: tuple[str, ...] = ()

    def __init__(
        self, params: Tensors, lr: float | Array, weight_decay: float, master_weights: bool,
        maximize: bool, stochastic_rounding: bool, seed: int,
    ) -> None:  # fmt: skip
        rate_of(lr)
        if isinstance(lr, Array) and (lr.size != 1 or lr.dtype.name != "float32"):
            raise InvalidArgument(f"lr is a number or an array of one float32, got {lr!r:.80}")
        not_negative(weight_decay, "weight_decay")
        self.params: list[Array] = tensors(params)
        self.lr = lr
        self.weight_decay = weight_decay
        for i, each in enumerate(self.params):
            if not isinstance(each, Array):
                raise ArgumentError(f"params[{i}] is a kw.Array, got {type(each).__name__}")
            if each.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
                raise InvalidArgument(
                    f"params[{i}] is float16, bfloat16, float32 or float64, not {each.dtype}"
                )
        if len({id(each) for each in self.params}) < len(self.params):
            raise InvalidArgument(
                "params has an array twice: pass it once, with the sum of its gradients"
            )
        if not self.params:
            raise InvalidArgument("an optimiser has one parameter at least")
        if master_weights and stochastic_rounding:
            raise InvalidArgument("master weights need no stochastic rounding: choose one")
        self.masters = [p.astype("float32") for p in self.params] if master_weights else []
        self._shared = {
            "maximize": maximize, "stochastic_rounding": stochastic_rounding,
            "seed": whole(seed, "seed"),
        }  # fmt: skip
        self.states: dict[str, list[Array]] = {
            name: [kernwright.zeros_like(p, _state_dtype(p)) for p in self.params]
            for name in self._state_names
        }
        self.steps = kernwright.zeros(1, "int64", device=self.params[0].device)

    def step(self, grads: Tensors, *, grad_scale: Array | None = None) -> None:
        """Moves the parameters by gradients of their shapes, which `grad_scale`, an array of one
        float32, multiplies (see clip_scale()). When it raises, nothing has changed."""
        self._step(
            grads, step=Following(self.steps), lr=self.lr, weight_decay=self.weight_decay,
            masters=self.masters, grad_scale=grad_scale, **self._shared,
        )  # fmt: skip
        _core._advance_counter(self.steps, 1)

    def _step(self, grads: Tensors, **options: Any) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The arrays of the states by name, "steps" and, if there are any, "masters": the same
        memory, no copies."""
        masters = {"masters": self.masters} if self.masters else {}
        return {**self.states, **masters, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copies arrays as state_dict() returns them into the states."""
        own = self.state_dict()
        if own.keys() != state.keys():
            raise NameNotFound(f"the states are {sorted(own)}, got {sorted(state)}")
        pairs = [
            (name, to, value) for name in own for to, value in _pairs(name, own[name], state[name])
        ]
        for name, to, value in pairs:
            if value.shape != to.shape:
                raise InvalidArgument(f"{name} has shape {to.shape}, got {value.shape}")
        for _, to, value in pairs:
            to[...] = value.astype(to.dtype, copy=False)

    def __repr__(self) -> str:
        count = sum(p.size for p in self.params)
        return f"<kw.optim.{type(self).__name__} of {count} parameters, lr={self.lr}>"


def _pairs(name: str, own: Tensors, given: Tensors) -> list[tuple[Array, Array]]:
    """The arrays of a state with those that are loaded into them."""
    targets, values = tensors(own), [device_array(each, name) for each in tensors(given)]
    if len(targets) != len(values):
        raise InvalidArgument(f"{name} has {len(targets)} arrays, got {len(values)}")
    return list(zip(targets, values, strict=True))


class AdamW(_Optimizer):
    """AdamW with decoupled weight decay: see adamw() for the formula.

    `master_weights` keeps float32 copies of the parameters; `stochastic_rounding` is of bfloat16
    parameters without them. `amsgrad` keeps the largest exp_avg_sq so far and divides by its root.
    Settings that have no sense (a negative `lr`, `betas` of 1) raise InvalidArgument at once.

    >>> w = kw.ones(8, "bfloat16")
    >>> kw.optim.AdamW(w, master_weights=True)
    <kw.optim.AdamW of 8 parameters, lr=0.001>
    """

    _state_names: tuple[str, ...] = ("exp_avg", "exp_avg_sq")
    _rule = staticmethod(_functions.adamw)

    def __init__(
        self, params: Tensors, lr: float | Array = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2, *,
        amsgrad: bool = False, master_weights: bool = False, maximize: bool = False,
        stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        two_betas(betas)
        not_negative(eps, "eps")
        if amsgrad:
            self._state_names = (*self._state_names, "max_exp_avg_sq")
        super().__init__(params, lr, weight_decay, master_weights, maximize, stochastic_rounding,
                         seed)  # fmt: skip
        self.betas, self.eps = betas, eps

    def _step(self, grads: Tensors, **options: Any) -> None:
        self._rule(
            self.params, grads, self.states["exp_avg"], self.states["exp_avg_sq"],
            self.states.get("max_exp_avg_sq", ()), betas=self.betas, eps=self.eps, **options,
        )  # fmt: skip


class Adam(AdamW):
    """Adam, whose weight decay (0 by default) is part of the gradient: see adam().

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.Adam(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _rule = staticmethod(_functions.adam)

    def __init__(
        self, params: Tensors, lr: float | Array = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, *,
        amsgrad: bool = False, master_weights: bool = False, maximize: bool = False,
        stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad=amsgrad, master_weights=master_weights,
            maximize=maximize, stochastic_rounding=stochastic_rounding, seed=seed,
        )  # fmt: skip


class Lion(_Optimizer):
    """Lion, which moves by the sign of an average: see lion() for the formula.

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.Lion(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _state_names = ("exp_avg",)

    def __init__(
        self, params: Tensors, lr: float | Array = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, master_weights: bool = False, maximize: bool = False,
        stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        two_betas(betas)
        super().__init__(params, lr, weight_decay, master_weights, maximize, stochastic_rounding,
                         seed)  # fmt: skip
        self.betas = betas

    def _step(self, grads: Tensors, **options: Any) -> None:
        _functions.lion(self.params, grads, self.states["exp_avg"], betas=self.betas, **options)


class SGD(_Optimizer):
    """Gradient descent with momentum, Nesterov's too: see sgd() for the formula.

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.SGD(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _state_names: tuple[str, ...] = ("momentum_buffer",)

    def __init__(
        self, params: Tensors, lr: float | Array = 1e-3, momentum: float = 0.0,
        dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, *,
        master_weights: bool = False, maximize: bool = False, stochastic_rounding: bool = False,
        seed: int = 0,
    ) -> None:  # fmt: skip
        momentum_settings(momentum, dampening, nesterov)
        if momentum == 0:
            self._state_names = ()
        super().__init__(params, lr, weight_decay, master_weights, maximize, stochastic_rounding,
                         seed)  # fmt: skip
        self.momentum, self.dampening, self.nesterov = momentum, dampening, nesterov

    def _step(self, grads: Tensors, **options: Any) -> None:
        _functions.sgd(
            self.params, grads, self.states.get("momentum_buffer", ()), momentum=self.momentum,
            dampening=self.dampening, nesterov=self.nesterov, **options,
        )  # fmt: skip


def _state_dtype(param: Array) -> str:
    return "float64" if param.dtype.name == "float64" else "float32"
