"""kw.fft: discrete Fourier transforms of any length, as the array API names them."""

from kernwright.fft._helpers import *
from kernwright.fft._transforms import *
