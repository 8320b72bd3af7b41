"""Pooling, interpolation and the order of pixels: arrays (..., channels, axes of space)."""

from kernwright.nn._spatial import _interpolation, _pixels, _pooling, _pooling_backward
from kernwright.nn._spatial._interpolation import *
from kernwright.nn._spatial._pixels import *
from kernwright.nn._spatial._pooling import *
from kernwright.nn._spatial._pooling_backward import *

__all__ = [
    *_interpolation.__all__,
    *_pixels.__all__,
    *_pooling.__all__,
    *_pooling_backward.__all__,
]
