"""Numbers to begin with: new arrays of a shape, the same ones for a seed on every device.

The formulas and names are those of torch.nn.init. Weights have the shape (outputs, inputs, ...):
`fan_in` is the number of inputs of an output, `fan_out` that of outputs of an input.

>>> kw.nn.init.kaiming_uniform((4, 2), seed=1).shape
(4, 2)
"""

from kernwright._support.typed import publish
from kernwright.nn.init import _functions
from kernwright.nn.init._functions import *

__all__ = [*_functions.__all__]

publish(globals(), __all__)
del publish
