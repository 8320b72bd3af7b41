"""Models whose kernels sum up a row of a step in one order, however many rows the step has."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, Device
from kernwright.llm._registry import is_built_in
from kernwright.llm._weights.streaming import is_streamed

__all__ = ["PLANNED_ROWS", "sums_alike"]

PLANNED_ROWS = 32  # that plans may count on at most
_PACK = 8  # of 16-bit elements: what a tensor map needs of a row's length


def sums_alike(model: Any, rows: int, device: Any) -> bool:
    """Whether steps of a deterministic engine may have fewer than its `rows`.

    Hopper's tensor cores take the products of 16-bit elements, and their plans count on `rows`, see
    kernels_src/plans/planned_rows.h. Weights of few bits, experts, latent attention and layers of
    the user have plans by the rows that there are: their steps all have one size.
    """
    from kernwright.llm.models._layers import Attention, Linear

    if rows > PLANNED_ROWS or Device(device).compute_capability[0] != 9 or not is_built_in(model):
        return False
    parts = [part for _, part in model.named_modules()]
    layers = [part for part in parts if hasattr(part, "cache_layer")]
    products = [part for part in parts if hasattr(part, "extents")]
    return (
        not is_streamed(model)
        and not any(hasattr(part, "top_k") for part in parts)
        and all(type(part) is Attention for part in layers)
        and all(type(part) is Linear and _is_plain(part.weight) for part in products)
    )


def _is_plain(weight: Any) -> bool:
    return (
        isinstance(weight, Array)
        and weight.dtype in ("float16", "bfloat16")
        and weight.shape[1] % _PACK == 0
        and weight.shape[0] % _PACK == 0
    )
