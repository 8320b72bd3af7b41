"""Random numbers made on the device: the same for a seed on every device.

>>> import kernwright as kw
>>> x = kw.random.normal((2, 3), seed=7)
>>> x.shape, str(x.dtype)
((2, 3), 'float32')
>>> generator = kw.random.Generator(7)
>>> bool((generator.normal((2, 3)).numpy() == x.numpy()).all())
True

Functions take `seed=`; without it they go on where the default generator is, which `seed(n)` sets.
"""

from kernwright._support.typed import publish
from kernwright.random._functions import *
from kernwright.random._functions import __all__ as _functions
from kernwright.random._generator import *
from kernwright.random._generator import __all__ as _generator
from kernwright.random._real_functions import *
from kernwright.random._real_functions import __all__ as _real_functions
from kernwright.random._vector_functions import *
from kernwright.random._vector_functions import __all__ as _vector_functions
from kernwright.random._whole_functions import *
from kernwright.random._whole_functions import __all__ as _whole_functions

__all__ = [*_functions, *_generator, *_real_functions, *_vector_functions, *_whole_functions]

publish(globals(), __all__)
del publish
