"""Optimisers: one launch for many tensors, in place, with torch's formulas.

>>> import numpy as np, kernwright as kw
>>> weights = [kw.ones((3, 4)), kw.ones(4)]
>>> optimizer = kw.optim.AdamW(weights, lr=0.1)
>>> optimizer.step([kw.ones((3, 4)), kw.ones(4)])
>>> round(float(weights[1].numpy()[0]), 3)
0.899

Classes keep the states and count steps on the device, so that a step can be captured in a graph;
functions take everything and keep nothing.
"""

from kernwright._support.typed import publish
from kernwright.optim._classes import *
from kernwright.optim._classes import __all__ as _classes
from kernwright.optim._functions import *
from kernwright.optim._functions import __all__ as _functions

__all__ = [*_classes, *_functions]

publish(globals(), __all__)
del publish
