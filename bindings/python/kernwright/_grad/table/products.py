"""Gradients of layers behind an activation: the kernel of the product multiplies by the slopes."""

from __future__ import annotations

from collections.abc import Callable

from kernwright import _core
from kernwright._core import Array

__all__ = ["SLOPES", "Product", "product_pull"]

# The activations whose slope takes few instructions, and what kernels of 16 bits call them.
SLOPES = {
    "gelu": "ShortGelu",
    "gelu_tanh": "ShortGeluTanh",
    "quick_gelu": "QuickGelu",
    "relu": "Relu",
    "relu2": "Relu2",
    "silu": "ShortSilu",
}
_TYPES = {"float16": "Float16", "bfloat16": "BFloat16"}
# Fewer rows take kernels that sum in another order, and have no passes over memory to save.
_LEAST_ROWS = 256


class Product:
    """The gradient cotangent @ weight of a layer's input, before it is computed."""

    __slots__ = ("cotangent", "pull")

    def __init__(self, cotangent: Array, pull: Callable[[Array], Array]) -> None:
        self.cotangent, self.pull = cotangent, pull

    def computed(self) -> Array:
        return self.pull(self.cotangent)

    def through(self, kind: str, x: Array, bias: Array | None = None) -> Array | None:
        """The gradient of x beneath the activation of x + bias, of the same bits as by two kernels,
        each of which rounds its results. None where two kernels are to be launched."""
        g: Array = self.cotangent
        weight: Array = self.pull.weight  # type: ignore[attr-defined]
        columns, inner = weight.shape[1], weight.shape[0]
        name = _TYPES.get(str(x.dtype))
        if name is None or not x.dtype == g.dtype == weight.dtype or x.shape[:-1] != g.shape[:-1]:
            return None
        if x.size < _LEAST_ROWS * columns or inner == 0 or columns % 8 or inner % 8:
            return None
        if x.device.compute_capability < (8, 0) or not x.is_contiguous:
            return None
        at = "c" if bias is None else "c + bias"
        made = _core._gemm(
            g.reshape(-1, inner), weight, bias=bias, c=x.reshape(-1, columns),
            expression=f"to_compute(from_compute<{name}>(x)) * {SLOPES[kind]}::slope({at}, {{}})",
        )  # fmt: skip
        return made.reshape(x.shape)


def product_pull(pull: Callable[[Array], Array], weight: Array) -> Callable[[Array], Array]:
    """Marks the pullback g -> g @ weight: an activation in front may compute the product."""
    pull.weight = weight  # type: ignore[attr-defined]
    return pull
