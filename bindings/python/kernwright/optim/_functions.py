"""Steps of optimisers and gradient norms as functions: they keep nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernwright import _core
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._nest import leaves, require_kinds

__all__ = ["adam", "adamw", "clip_grad_norm", "clip_scale", "grad_norm", "lion", "sgd"]

Tensors = Array | Sequence[Any]


def adamw(
    params: Tensors, grads: Tensors, exp_avg: Tensors, exp_avg_sq: Tensors,
    max_exp_avg_sq: Tensors = (), *,
    step: int | Array, lr: float | Array = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, weight_decay: float = 1e-2, masters: Tensors = (), maximize: bool = False,
    grad_scale: Array | None = None, stochastic_rounding: bool = False, seed: int = 0,
) -> None:  # fmt: skip
    """One step of AdamW, in place, of an array or a list of arrays, as torch.optim.AdamW::

        p = p * (1 - lr * weight_decay)
        m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g
        p = p - lr / (1 - beta1 ** step) * m / (sqrt(v / (1 - beta2 ** step)) + eps)

    Parameters and gradients are float16, bfloat16, float32 or float64, their dtypes independent;
    the states mostly float32 (float64 of float64), any shape. Everything but the gradients is
    contiguous. Up to 48 arrays of equal dtypes go into one launch.

    - `step`, counted from 1, or an array of one int64; `lr` may be an array of one float32, and
      `grad_scale`, one float32, is a factor of all gradients. Arrays are read when the kernel runs.
    - `masters`: the parameters in float32; `params` become rounded copies of them.
    - `stochastic_rounding`: bfloat16 parameters are rounded up or down, with the chance of how near
      each is; the random numbers depend on `seed`, step, the tensor's place in the list and the
      element's in the tensor.
    - `max_exp_avg_sq`: the largest v so far; if it is given, it stands for v in the root (torch's
      amsgrad).

    Raises InvalidArgument, naming the tensor, for shapes, dtypes or devices that do not fit.

    >>> p, m, v = kw.ones(2), kw.zeros(2), kw.zeros(2)
    >>> kw.optim.adamw(p, kw.asarray([9.0, -9.0]), m, v, step=1, lr=0.25, weight_decay=0.0)
    >>> p.numpy().round(4)
    array([0.75, 1.25], dtype=float32)
    """
    _adam(
        "adamw", params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, betas, eps,
        weight_decay, masters, maximize, grad_scale, stochastic_rounding, seed,
    )  # fmt: skip


def adam(
    params: Tensors, grads: Tensors, exp_avg: Tensors, exp_avg_sq: Tensors,
    max_exp_avg_sq: Tensors = (), *,
    step: int | Array, lr: float | Array = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, weight_decay: float = 0.0, masters: Tensors = (), maximize: bool = False,
    grad_scale: Array | None = None, stochastic_rounding: bool = False, seed: int = 0,
) -> None:  # fmt: skip
    """One step of Adam, in place: adamw(), but for ``g = g + weight_decay * p`` instead of the
    decay of the parameters.

    >>> p, m, v = kw.ones(2), kw.zeros(2), kw.zeros(2)
    >>> kw.optim.adam(p, kw.asarray([9.0, -9.0]), m, v, step=1, lr=0.25)
    >>> p.numpy().round(4)
    array([0.75, 1.25], dtype=float32)
    """
    _adam(
        "adam", params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, betas, eps,
        weight_decay, masters, maximize, grad_scale, stochastic_rounding, seed,
    )  # fmt: skip


def lion(
    params: Tensors, grads: Tensors, exp_avg: Tensors, *, step: int | Array = 1,
    lr: float | Array = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0,
    masters: Tensors = (), maximize: bool = False, grad_scale: Array | None = None,
    stochastic_rounding: bool = False, seed: int = 0,
) -> None:  # fmt: skip
    """One step of Lion, in place; arguments as adamw()'s::

    c = beta1 * m + (1 - beta1) * g
    p = p * (1 - lr * weight_decay) - lr * sign(c)
    m = beta2 * m + (1 - beta2) * g

    >>> p, m = kw.ones(2), kw.zeros(2)
    >>> kw.optim.lion(p, kw.asarray([9.0, -9.0]), m, lr=0.25)
    >>> p.numpy()
    array([0.75, 1.25], dtype=float32)
    """
    options = _options(step, lr, grad_scale, maximize, stochastic_rounding, seed)
    options |= two_betas(betas) | {"decay": not_negative(weight_decay, "weight_decay")}
    _core._optimizer_step("lion", tensors(params), tensors(grads), tensors(exp_avg), [], [],
                          tensors(masters), options)  # fmt: skip


def sgd(
    params: Tensors, grads: Tensors, momentum_buffers: Tensors = (), *, step: int | Array = 1,
    lr: float | Array = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
    weight_decay: float = 0.0, nesterov: bool = False, masters: Tensors = (),
    maximize: bool = False, grad_scale: Array | None = None, stochastic_rounding: bool = False,
    seed: int = 0,
) -> None:  # fmt: skip
    """One step of gradient descent, in place, as torch.optim.SGD; arguments as adamw()'s::

        g = g + weight_decay * p
        m = g in step 1, else momentum * m + (1 - dampening) * g
        p = p - lr * (g + momentum * m if nesterov else m)

    Without momentum ``p = p - lr * g``, and there are no buffers.

    >>> p = kw.ones(2)
    >>> kw.optim.sgd(p, kw.asarray([1.0, -1.0]), lr=0.25)
    >>> p.numpy()
    array([0.75, 1.25], dtype=float32)
    """
    options = _options(step, lr, grad_scale, maximize, stochastic_rounding, seed)
    options |= {"decay": not_negative(weight_decay, "weight_decay")}
    options |= momentum_settings(momentum, dampening, nesterov)
    _core._optimizer_step("sgd", tensors(params), tensors(grads), tensors(momentum_buffers), [],
                          [], tensors(masters), options)  # fmt: skip


def grad_norm(grads: Tensors, norm_type: float = 2.0) -> Array:
    """The norm of all gradients of a nest as one vector, float32 without axes: the sum of their
    magnitudes to the power of `norm_type` (above 0), to the power of 1 / `norm_type`; with
    ``norm_type=math.inf`` the largest magnitude. The order of the sum is fixed.

    >>> kw.optim.grad_norm([kw.asarray([3.0]), kw.asarray([4.0])]).item()
    5.0
    """
    return clip_scale(grads, math.inf, norm_type)[0]


def clip_scale(grads: Tensors, max_norm: float, norm_type: float = 2.0) -> tuple[Array, Array]:
    """The norm, and min(1, max_norm / (norm + 1e-6)). Pass the latter as `grad_scale` of adamw()
    and the other optimisers; this saves a pass over the gradients. Both are float32 without
    axes.

    >>> norm, scale = kw.optim.clip_scale([kw.full(4, 3.0)], 1.5)
    >>> norm.item(), round(scale.item(), 3)
    (6.0, 0.25)
    """
    limit, order = not_negative(max_norm, "max_norm"), _order(norm_type)
    found = leaves(grads, "grads")
    try:
        return _core._gradient_norm(list(found.values()), limit, order)
    except InvalidArgument:
        require_kinds(found)
        raise


def clip_grad_norm(grads: Tensors, max_norm: float, norm_type: float = 2.0) -> Array:
    """Multiplies the gradients in place so that their common norm is at most `max_norm`, as
    torch.nn.utils.clip_grad_norm_. Returns their former norm.

    >>> g = kw.full(4, 3.0)
    >>> float(kw.optim.clip_grad_norm(g, 1.0)), g.numpy().round(3).tolist()
    (6.0, [0.5, 0.5, 0.5, 0.5])
    """
    norm, scale = clip_scale(grads, max_norm, norm_type)
    _core._scale_tensors(_every(grads), scale)
    return norm


def tensors(values: Any) -> list[Any]:
    """A list of what is one array, or several."""
    if isinstance(values, (list, tuple)):
        return list(values)
    if values is None:
        return []
    if hasattr(values, "shape"):
        return [values]
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(
            f"expected an array or a list of arrays, got {type(values).__name__}"
        ) from None


def _adam(
    rule: str, params: Any, grads: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any,
    step: Any, lr: Any, betas: Any, eps: float, weight_decay: float, masters: Any, maximize: bool,
    grad_scale: Any, stochastic_rounding: bool, seed: int,
) -> None:  # fmt: skip
    options = _options(step, lr, grad_scale, maximize, stochastic_rounding, seed)
    largest = tensors(max_exp_avg_sq)
    options |= two_betas(betas) | {
        "epsilon": not_negative(eps, "eps"),
        "decay": not_negative(weight_decay, "weight_decay"),
        "amsgrad": bool(largest),
    }
    _core._optimizer_step(
        rule, tensors(params), tensors(grads), tensors(exp_avg), tensors(exp_avg_sq), largest,
        tensors(masters), options,
    )  # fmt: skip


def _options(
    step: Any, lr: Any, grad_scale: Any, maximize: bool, stochastic_rounding: bool, seed: int
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "scale": grad_scale,
        "maximize": bool(maximize),
        "stochastic_rounding": bool(stochastic_rounding),
        "seed": seed,
    }
    if isinstance(step, Array):
        options |= {"steps": step, "step": 0}
    else:
        options["step"] = step
    if isinstance(lr, Array):
        return options | {"rates": lr}
    return options | {"rate": rate_of(lr)}


def not_negative(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is a number, got {value!r:.60}") from None
    if not number >= 0:
        raise InvalidArgument(f"{name} is not negative, got {number}")
    return number


def two_betas(betas: Any) -> dict[str, float]:
    try:
        first, second = map(float, betas)
    except (TypeError, ValueError):
        raise ArgumentError(f"betas are two numbers, got {betas!r:.60}") from None
    if not (0 <= first < 1 and 0 <= second < 1):
        raise InvalidArgument(f"betas lie between 0 and 1, got {betas}")
    return {"beta1": first, "beta2": second}


def momentum_settings(momentum: Any, dampening: Any, nesterov: bool) -> dict[str, Any]:
    """The settings of sgd(), checked."""
    kept = not_negative(momentum, "momentum")
    try:
        damped = float(dampening)
    except (TypeError, ValueError):
        raise ArgumentError(f"dampening is a number, got {dampening!r:.60}") from None
    if nesterov and (kept == 0 or damped != 0):
        raise InvalidArgument(
            f"nesterov needs a momentum above 0 and no dampening, got {kept} and {damped}"
        )
    return {"momentum": kept, "dampening": damped, "nesterov": bool(nesterov)}


def _every(grads: Any) -> list[Any]:
    """The arrays of a nest."""
    return list(leaves(grads, "grads").values())


def rate_of(lr: Any) -> Any:
    """A learning rate, checked if it is a number."""
    if isinstance(lr, Array):
        return lr
    if (rate := not_negative(lr, "lr")) == float("inf"):
        raise InvalidArgument(f"lr is finite, got {rate}")
    return rate


def _order(norm_type: Any) -> float:
    order = not_negative(norm_type, "norm_type")
    if order == 0:
        raise InvalidArgument("norm_type is above 0 (math.inf: the largest magnitude), got 0")
    return order
