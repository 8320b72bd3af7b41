"""Optimisers: one launch for many tensors, in place, with torch's formulas.

>>> import numpy as np, kernwright as kw
>>> weights = {"w": kw.ones((3, 4)), "b": kw.ones(4)}
>>> optimizer = kw.optim.AdamW(weights, lr=0.1)
>>> optimizer.step({"w": kw.ones((3, 4)), "b": kw.ones(4)})
>>> round(float(weights["b"].numpy()[0]), 3)
0.899

Classes keep the states, and their hyperparameters and counts on the device, so that a step can be
captured in a graph; functions take everything and keep nothing.
"""

from kernwright._support.typed import publish
from kernwright.optim._accumulate import *
from kernwright.optim._accumulate import __all__ as _accumulate
from kernwright.optim._average import *
from kernwright.optim._average import __all__ as _average
from kernwright.optim._classes import *
from kernwright.optim._classes import __all__ as _classes
from kernwright.optim._functions import *
from kernwright.optim._functions import __all__ as _functions
from kernwright.optim._loss_scale import *
from kernwright.optim._loss_scale import __all__ as _loss_scale
from kernwright.optim._muon import *
from kernwright.optim._muon import __all__ as _muon
from kernwright.optim._schedules import *
from kernwright.optim._schedules import __all__ as _schedules

__all__ = [
    *(*_accumulate, *_average, *_classes, *_functions, *_loss_scale, *_muon, *_schedules),
]

publish(globals(), __all__)
del publish
