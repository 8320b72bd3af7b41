"""Gradients: the recording, the table of operations, the functions that users call."""

from kernwright._grad import fused as fused  # records calls of fused functions
from kernwright._grad.transforms import (
    checkpoint,
    custom_gradient,
    grad,
    stop_gradient,
    value_and_grad,
    vjp,
)

__all__ = ["checkpoint", "custom_gradient", "grad", "stop_gradient", "value_and_grad", "vjp"]
