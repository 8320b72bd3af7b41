"""Language models: files in, text out, on kernels that are strings.

>>> from kernwright import llm
>>> issubclass(llm.ContextError, llm.ModelError)
True
"""

from kernwright._support.typed import publish
from kernwright.llm._errors import *
from kernwright.llm._errors import __all__ as _errors
from kernwright.llm._step import *
from kernwright.llm._step import __all__ as _step

__all__ = [*_errors, *_step]

publish(globals(), __all__)
del publish
