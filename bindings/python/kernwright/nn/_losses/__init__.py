"""Losses and their gradients: cross-entropy of logits, and losses of pairs of elements.

>>> import numpy as np, kernwright as kw
>>> x, t = (kw.asarray(np.array(v, np.float32)) for v in ([1.0, 2.0], [1.0, 4.0]))
>>> kw.nn.mse_loss(x, t).item()
2.0
"""

from kernwright.nn._losses import _entropy, _likelihoods, _linear_entropy, _pairs
from kernwright.nn._losses._entropy import *
from kernwright.nn._losses._likelihoods import *
from kernwright.nn._losses._linear_entropy import *
from kernwright.nn._losses._pairs import *

__all__ = [*_entropy.__all__, *_likelihoods.__all__, *_linear_entropy.__all__, *_pairs.__all__]
