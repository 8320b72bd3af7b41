"""Modules: the layers of networks with their parameters.

>>> import kernwright as kw
>>> kw.nn.Sequential(kw.nn.Linear(2, 3), kw.nn.silu)(kw.ones((1, 2))).shape
(1, 3)
"""

from kernwright.nn._modules import (
    attention,
    containers,
    conv,
    dropout,
    linear,
    module,
    norms,
    recurrent,
)
from kernwright.nn._modules.attention import *
from kernwright.nn._modules.containers import *
from kernwright.nn._modules.conv import *
from kernwright.nn._modules.dropout import *
from kernwright.nn._modules.linear import *
from kernwright.nn._modules.module import *
from kernwright.nn._modules.norms import *
from kernwright.nn._modules.recurrent import *

__all__ = [
    *attention.__all__,
    *containers.__all__,
    *conv.__all__,
    *dropout.__all__,
    *linear.__all__,
    *module.__all__,
    *norms.__all__,
    *recurrent.__all__,
]
