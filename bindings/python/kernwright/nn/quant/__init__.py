"""Weights in the formats that models are kept in, to numbers and back.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.arange(-16, 16, dtype=np.float32))
>>> blocks = kw.nn.quant.quantize(x, "q8_0")
>>> blocks.shape, kw.nn.quant.dequantize(blocks, "q8_0").numpy()[:3].round(1).tolist()
((34,), [-16.0, -15.0, -14.0])
"""

from kernwright._support.typed import publish
from kernwright.nn.quant import _formats, _nibbles, _packed
from kernwright.nn.quant._formats import *
from kernwright.nn.quant._nibbles import *
from kernwright.nn.quant._packed import *

__all__ = [*_formats.__all__, *_nibbles.__all__, *_packed.__all__]

publish(globals(), __all__)
del publish
