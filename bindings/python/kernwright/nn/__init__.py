"""Pieces of neural networks, each one kernel or two."""

from kernwright._support.typed import publish
from kernwright.nn._quantize import *  # noqa: F403
from kernwright.nn._quantize import __all__ as _quantize
from kernwright.nn._sampling import *  # noqa: F403
from kernwright.nn._sampling import __all__ as _sampling

__all__ = [*_quantize, *_sampling]

publish(globals(), __all__)
del publish
