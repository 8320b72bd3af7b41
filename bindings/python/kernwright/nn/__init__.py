"""What neural networks are made of: functions of arrays, each a kernel or two.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.array([[0.0, 0.0], [1.0, 1.0]], np.float32))
>>> kw.nn.softmax(x).numpy().tolist()
[[0.5, 0.5], [0.5, 0.5]]
"""

from kernwright._support.typed import publish
from kernwright.nn import _norm, _norm_backward, _softmax
from kernwright.nn._norm import *
from kernwright.nn._norm_backward import *
from kernwright.nn._softmax import *

__all__ = [*_norm.__all__, *_norm_backward.__all__, *_softmax.__all__]

publish(globals(), __all__)
