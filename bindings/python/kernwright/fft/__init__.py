"""kw.fft: discrete Fourier transforms of any length, as the array API names them."""

from kernwright._support.typed import publish
from kernwright.fft import _helpers, _transforms
from kernwright.fft._helpers import *
from kernwright.fft._transforms import *

__all__ = [*_helpers.__all__, *_transforms.__all__]

publish(globals(), __all__)
del publish
