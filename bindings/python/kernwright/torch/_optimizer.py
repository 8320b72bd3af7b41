"""AdamW for torch: all parameters of a dtype in one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call_in_place

__all__ = ["AdamW"]


class AdamW(torch.optim.Optimizer):
    """torch.optim.AdamW, with the same formula and arguments; see kernwright.optim.adamw().

    Parameters are of float16, bfloat16, float32 or float64, contiguous and on one device for each
    group. `master_weights` keeps float32 copies of parameters in half precision, of which they
    become rounded copies; `stochastic_rounding` rounds bfloat16 parameters up or down with the
    chance of how near each is. States are of float32 (float64 of float64), named as torch's.

    >>> import torch, kernwright.torch as kt
    >>> p = torch.ones(2, requires_grad=True)
    >>> p.grad = torch.tensor([9.0, -9.0])
    >>> kt.AdamW([p], lr=0.25, weight_decay=0.0).step()
    >>> [round(each, 3) for each in p.tolist()]
    [0.75, 1.25]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
        master_weights: bool = False,
        stochastic_rounding: bool = False,
        seed: int = 0,
    ) -> None:
        if not lr >= 0 or not eps >= 0 or not weight_decay >= 0:
            raise InvalidArgument(
                f"lr, eps and weight_decay are not negative, got {lr}, {eps} and {weight_decay}"
            )
        if not all(0 <= beta < 1 for beta in betas):
            raise InvalidArgument(f"betas lie between 0 and 1, got {betas}")
        if master_weights and stochastic_rounding:
            raise InvalidArgument("master weights need no stochastic rounding: choose one")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "master_weights": master_weights,
                "stochastic_rounding": stochastic_rounding,
                "seed": seed,
            },
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every parameter that has a gradient; returns the result of `closure`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for params in self._alike(group).values():
                self._step(group, params)
        return loss

    def _alike(self, group: dict[str, Any]) -> dict[Any, list[torch.Tensor]]:
        """Parameters that take the same step: of one device, dtypes and count of steps."""
        alike: dict[Any, list[torch.Tensor]] = {}
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.grad.is_sparse:
                raise InvalidArgument("AdamW takes no sparse gradients")
            state = self.state[p]
            if not state:
                _begin(state, p, group["master_weights"])
            key = p.device, p.dtype, p.grad.dtype, int(state["step"]), "master" in state
            alike.setdefault(key, []).append(p)
        return alike

    def _step(self, group: dict[str, Any], params: list[torch.Tensor]) -> None:
        states = [self.state[p] for p in params]
        beta1, beta2 = group["betas"]
        options = {
            "rate": float(group["lr"]),
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": group["eps"],
            "decay": group["weight_decay"],
            "maximize": group["maximize"],
            "stochastic_rounding": group["stochastic_rounding"],
            "seed": group["seed"],
            "step": int(states[0]["step"]) + 1,
        }

        def run(params: Any, first: Any, second: Any, masters: Any, grads: Any) -> None:
            _core._optimizer_step("adamw", params, grads, first, second, [], masters, options)

        first, second = ([s[name] for s in states] for name in ("exp_avg", "exp_avg_sq"))
        masters = [s["master"] for s in states if "master" in s]
        grads = [p.grad for p in params]
        call_in_place(run, params[0], [params, first, second, masters], grads)
        for state in states:
            state["step"] += 1


def _begin(state: dict[str, Any], p: torch.Tensor, master_weights: bool) -> None:
    wide = torch.float64 if p.dtype == torch.float64 else torch.float32
    state["step"] = torch.tensor(0.0)  # in host memory, as torch's
    state["exp_avg"] = torch.zeros_like(p, dtype=wide, memory_format=torch.contiguous_format)
    state["exp_avg_sq"] = torch.zeros_like(state["exp_avg"])
    if master_weights and p.dtype != wide:
        state["master"] = p.detach().to(wide)
