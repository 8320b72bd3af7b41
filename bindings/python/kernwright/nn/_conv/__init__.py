"""Convolutions over axes of space: arrays (N, C, L) and (N, C, H, W), as torch has them."""

from kernwright.nn._conv import _backward, _forward
from kernwright.nn._conv._backward import *
from kernwright.nn._conv._forward import *

__all__ = [*_backward.__all__, *_forward.__all__]
