"""AdamW, Adam, Lion and SGD."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright.optim._groups import Group
from kernwright.optim._optimizer import Optimizer, Setting
from kernwright.optim._schedules import Schedule

__all__ = ["SGD", "Adam", "AdamW", "Lion"]

Rate = float | Array | Schedule


class AdamW(Optimizer):
    r"""AdamW with decoupled weight decay: see adamw() for the formula.

    `params`: a module, whose gradients come in the nest of its parameters(); an array; or a dict,
    list or tuple of modules and arrays, nested at will. Arrays that modules share are stepped once.
    Frozen parameters are left alone.

    - `lr`: a number, a schedule as cosine() makes it, or an array of one float32.
    - `groups`: dicts with a pattern of names "match" and hyperparameters of their own; the first
      pattern found in a name counts. In place of a pattern a function of name and array decides.
    - `master_weights` keeps float32 copies of the parameters; `stochastic_rounding` is of bfloat16
      parameters without them. `amsgrad` keeps the largest exp_avg_sq so far and divides by its
      root.

    Hyperparameters are attributes. They lie on the device: what is set between steps is used by
    graphs, too. A captured step() counts with each replay. Settings that have no sense (a negative
    `lr`, `betas` of 1) raise InvalidArgument at once, as a pattern without parameters does.

    >>> model = kw.nn.Sequential(kw.nn.Linear(4, 8), kw.nn.LayerNorm(8))
    >>> optimizer = kw.optim.AdamW(
    ...     model, lr=kw.optim.cosine(3e-4, 1000, warmup=100), weight_decay=0.1,
    ...     groups=[{"match": r"bias|^1\.", "weight_decay": 0.0}],
    ... )
    >>> [(group.names, group.options["weight_decay"]) for group in optimizer.groups]
    [(['0.bias', '1.weight', '1.bias'], 0.0), (['0.weight'], 0.1)]
    """

    _main = "adamw"
    betas = Setting()
    eps = Setting()

    def __init__(
        self, params: Any, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, *, groups: Any = None,
        amsgrad: bool = False, master_weights: bool = False, maximize: bool = False,
        stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {self._main: options}, groups=groups, master_weights=master_weights,
            maximize=maximize, stochastic_rounding=stochastic_rounding, seed=seed, amsgrad=amsgrad,
        )  # fmt: skip

    def _state_names(self, group: Group) -> tuple[str, ...]:
        more = ("max_exp_avg_sq",) if self._flags["amsgrad"] else ()
        return ("exp_avg", "exp_avg_sq", *more)


class Adam(AdamW):
    """Adam, whose weight decay (0 by default) is part of the gradient: see adam(). Arguments as
    AdamW's.

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.Adam(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _main = "adam"

    def __init__(
        self, params: Any, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, *, groups: Any = None,
        amsgrad: bool = False, master_weights: bool = False, maximize: bool = False,
        stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, groups=groups, amsgrad=amsgrad,
            master_weights=master_weights, maximize=maximize,
            stochastic_rounding=stochastic_rounding, seed=seed,
        )  # fmt: skip


class Lion(Optimizer):
    """Lion, which moves by the sign of an average: see lion() for the formula. Arguments as
    AdamW's.

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.Lion(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _main = "lion"
    betas = Setting()

    def __init__(
        self, params: Any, lr: Rate = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, groups: Any = None, master_weights: bool = False,
        maximize: bool = False, stochastic_rounding: bool = False, seed: int = 0,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(
            params, {"lion": options}, groups=groups, master_weights=master_weights,
            maximize=maximize, stochastic_rounding=stochastic_rounding, seed=seed,
        )  # fmt: skip

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg",)


class SGD(Optimizer):
    """Gradient descent with momentum, Nesterov's too: see sgd() for the formula. Arguments as
    AdamW's.

    >>> w = kw.ones(8)
    >>> optimizer = kw.optim.SGD(w, lr=0.1)
    >>> optimizer.step(kw.ones(8))
    >>> float(w[0]) < 1
    True
    """

    _main = "sgd"
    momentum = Setting()
    dampening = Setting()
    nesterov = Setting()

    def __init__(
        self, params: Any, lr: Rate = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, groups: Any = None,
        master_weights: bool = False, maximize: bool = False, stochastic_rounding: bool = False,
        seed: int = 0,
    ) -> None:  # fmt: skip
        options = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": bool(nesterov),
        }  # fmt: skip
        super().__init__(
            params, {"sgd": options}, groups=groups, master_weights=master_weights,
            maximize=maximize, stochastic_rounding=stochastic_rounding, seed=seed,
        )  # fmt: skip

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group.options["momentum"] != 0 else ()
