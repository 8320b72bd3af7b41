"""Muon: momentum whose matrices are made orthogonal before each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kernwright
from kernwright import _core
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn import fused_matmul
from kernwright.optim._classes import Rate
from kernwright.optim._groups import Group, require_options
from kernwright.optim._optimizer import Optimizer, Part, Setting

__all__ = ["Muon", "newton_schulz"]

# Keller Jordan's coefficients, https://github.com/KellerJordan/Muon (muon.py): the steepest slope
# at 0; singular values end between about 0.7 and 1.2.
_A, _B, _C = 3.4445, -4.7750, 2.0315


class Muon(Optimizer):
    r"""Muon for matrices, AdamW for all other parameters (K. Jordan,
    https://kellerjordan.github.io/posts/muon/).

    Each parameter with two axes, (out, in) as the weights of Linear, is stepped by ::

        m = momentum * m + (1 - momentum) * g
        u = newton_schulz(g + momentum * (m - g))          # m without nesterov
        p = p * (1 - lr * weight_decay) - lr * max(1, out / in) ** 0.5 * u

    Matrices of one shape are one batch of products. `adamw` are the hyperparameters of the rest;
    there lr is 3e-4, betas (0.9, 0.95), eps 1e-10 and weight_decay 0 unless given. `groups` as
    AdamW's; a group with ``"rule": "adamw"`` gives matrices to AdamW: embeddings and the last layer
    belong there. `dtype` is that of the products; parameters of float64 keep theirs.

    Momentum lies between 0 and 1. Raises as AdamW does.

    >>> model = kw.nn.Sequential(kw.nn.Embedding(10, 8), kw.nn.Linear(8, 8), kw.nn.Linear(8, 10))
    >>> optimizer = kw.optim.Muon(model, lr=0.02, groups=[{"match": r"^[02]\.", "rule": "adamw"}])
    >>> [(group.rule, group.names) for group in optimizer.groups]
    [('adamw', ['0.weight', '2.weight', '2.bias']), ('muon', ['1.weight']), ('adamw', ['1.bias'])]
    """

    _main = "muon"
    momentum = Setting()

    def __init__(
        self, params: Any, lr: Rate = 0.02, momentum: float = 0.95, weight_decay: float = 0.0, *,
        nesterov: bool = True, adamw: Mapping[str, Any] | None = None, groups: Any = None,
        ns_steps: int = 5, dtype: Any = "bfloat16", master_weights: bool = False,
        maximize: bool = False, stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        rest = {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-10, "weight_decay": 0.0}
        require_options(adamw or {}, rest, "adamw ")
        self._ns_steps, self._dtype = _step_count(ns_steps), _product_dtype(dtype)
        defaults = {
            "muon": {"lr": lr, "momentum": momentum, "weight_decay": weight_decay},
            "adamw": {**rest, **(adamw or {})},
        }
        super().__init__(
            params, defaults, groups=groups, master_weights=master_weights, maximize=maximize,
            stochastic_rounding=stochastic_rounding, seed=seed, nesterov=nesterov,
        )  # fmt: skip

    def _rule_of(self, array: Array, options: Mapping[str, Any]) -> str:
        rule = options.get("rule")
        if rule not in (None, "muon", "adamw"):
            raise InvalidArgument(f'a rule is "muon" or "adamw", got {rule!r:.40}')
        if rule == "muon" and array.ndim != 2:
            raise InvalidArgument(f"Muon steps matrices, got a parameter of shape {array.shape}")
        return rule or ("muon" if array.ndim == 2 else "adamw")

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group.rule == "muon" else ("exp_avg", "exp_avg_sq")

    def _parts(self, grads: dict[str, Array], words: dict[str, Any]) -> list[Part]:
        """Momenta change with the parameters, behind the last allocation."""
        made = []
        directions = self._directions(grads, words)
        for group in self.groups:
            names = [name for name in group.names if name in grads]
            if not names:
                continue
            if group.rule == "adamw":
                made.append(self._part(group, names, grads, words))
                continue
            options = self._options(group) | words | {"stochastic_rounding": False}
            made.append(("average", *self._momentum_lists(names, grads), options))
            made += self._orthogonal_parts(group, names, directions, words)
        return made

    def _orthogonal_parts(
        self, group: Group, names: list[str], directions: Mapping[str, Array],
        words: dict[str, Any],
    ) -> list[Part]:  # fmt: skip
        """The steps of a group's matrices, those of one gain together."""
        arrays = self._parameters.arrays
        by_gain: dict[float, list[str]] = {}
        for name in names:
            rows, columns = arrays[name].shape
            gain = max(1.0, rows / max(columns, 1)) ** 0.5
            by_gain.setdefault(gain, []).append(name)
        options = self._options(group) | words | {"scale": None, "maximize": False}
        return [
            ("decoupled", [arrays[n] for n in members], [directions[n] for n in members], [], [],
             [], [self._masters[n] for n in members] if self._masters else [],
             options | {"gain": gain})
            for gain, members in by_gain.items()
        ]  # fmt: skip

    def _directions(self, grads: dict[str, Array], words: dict[str, Any]) -> dict[str, Array]:
        """The orthogonal direction of each matrix; nothing of the optimiser changes."""
        buffers = self._states.get("momentum_buffer", {})
        alike: dict[Any, list[str]] = {}
        for name in grads:
            if name in buffers:
                key = buffers[name].shape, buffers[name].dtype.name
                alike.setdefault(key, []).append(name)
        # Zeros, because a skipped step writes no directions.
        stacks = {
            key: kernwright.zeros((len(names), *key[0]), key[1], device=self.steps.device)
            for key, names in alike.items()
        }
        slots = {
            name: stacks[key][i] for key, names in alike.items() for i, name in enumerate(names)
        }
        for group in self.groups:
            names = [name for name in group.names if name in slots]
            if names:
                momenta, given, *_ = self._momentum_lists(names, grads)
                _core._optimizer_step(
                    "direction", [slots[name] for name in names], given, momenta, [], [], [],
                    self._options(group) | words | {"stochastic_rounding": False},
                )  # fmt: skip
        made: dict[str, Array] = {}
        for key, names in alike.items():
            dtype = "float64" if key[1] == "float64" else self._dtype
            turned = newton_schulz(stacks[key], self._ns_steps, dtype=dtype)
            whole = turned if turned.is_contiguous else turned.copy()
            made |= {name: whole[i] for i, name in enumerate(names)}
        return made

    def _momentum_lists(self, names: list[str], grads: Mapping[str, Array]) -> tuple[Any, ...]:
        """Momenta in the place of parameters, their gradients, and no states."""
        momenta = [self._states["momentum_buffer"][name] for name in names]
        return momenta, [grads[name] for name in names], [], [], [], []


def newton_schulz(x: Array, steps: int = 5, *, dtype: Any = "bfloat16") -> Array:
    """Matrices with the singular vectors of x (..., m, n), and singular values near 1 in place of
    its own: `steps` times ``x = a x + (b x x^T + c (x x^T)^2) x``, of x divided by its norm.

    The coefficients are Muon's: after 5 steps, singular values above a hundredth of the norm lie
    between about 0.7 and 1.2. Products are those of `dtype`, float16, bfloat16, float32 or float64,
    which the result has. Raises InvalidArgument for less than two axes.

    >>> x = kw.asarray([[3.0, 0.0], [0.0, -0.5]])
    >>> kw.optim.newton_schulz(x, dtype="float32").numpy().round(2)
    array([[ 0.71,  0.  ],
           [ 0.  , -1.04]], dtype=float32)
    """
    if x.ndim < 2:
        raise InvalidArgument(f"newton_schulz() takes matrices (..., m, n), got {x.shape}")
    if x.dtype.kind == "c":
        raise InvalidArgument(f"newton_schulz() takes real matrices, got {x.dtype}")
    count, dtype = _step_count(steps), _product_dtype(dtype)
    tall = x.shape[-2] > x.shape[-1]
    wide = x if x.dtype.name == "float64" else x.astype("float32", copy=False)
    length = kernwright.sqrt(kernwright.sum(wide * wide, axis=(-2, -1), keepdims=True))
    y = (wide / (length + 1e-7)).astype(dtype)
    y = y.mT.copy() if tall else y
    for _ in range(count):
        square = kernwright.matmul(y, y.mT)
        y = _product_and(_product_and(square, square, square, _C, _B), y, y, 1.0, _A)
    return y.mT if tall else y


def _product_and(a: Array, b: Array, c: Array, alpha: float, beta: float) -> Array:
    """alpha * a @ b + beta * c, rounded once in half precision."""
    if a.dtype.itemsize == 2:
        return fused_matmul(a, b, "alpha * x + beta * c", c=c, alpha=alpha, beta=beta)
    return alpha * kernwright.matmul(a, b) + beta * c


def _step_count(steps: Any) -> int:
    if isinstance(steps, bool) or not hasattr(steps, "__index__") or int(steps) < 0:
        raise ArgumentError(f"the steps of Newton-Schulz are an int from 0 on, got {steps!r:.60}")
    return int(steps)


def _product_dtype(dtype: Any) -> str:
    name = _core._dtype(dtype).name
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise InvalidArgument(
            f"the products are of float16, bfloat16, float32 or float64, not {name}"
        )
    return name
