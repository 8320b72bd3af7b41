"""What neural networks are made of: functions of arrays, each a kernel or two.

>>> import numpy as np, kernwright as kw
>>> kw.nn.relu(kw.asarray(np.array([-1.0, 2.0], np.float32))).numpy().tolist()
[0.0, 2.0]
"""

from kernwright._support.typed import publish
from kernwright.nn import (
    _activation_gradients,
    _activations,
    _embedding,
    _gates,
    _losses,
    _positions,
    _rope,
)
from kernwright.nn._activation_gradients import *
from kernwright.nn._activations import *
from kernwright.nn._embedding import *
from kernwright.nn._gates import *
from kernwright.nn._losses import *
from kernwright.nn._positions import *
from kernwright.nn._rope import *

__all__ = [
    *_activation_gradients.__all__,
    *_activations.__all__,
    *_embedding.__all__,
    *_gates.__all__,
    *_losses.__all__,
    *_positions.__all__,
    *_rope.__all__,
]

publish(globals(), __all__)
