"""Language models: files in, text out, on kernels that are strings.

>>> from kernwright import llm
>>> issubclass(llm.ContextError, llm.ModelError)
True
"""

from kernwright._support.typed import publish
from kernwright.llm._errors import *
from kernwright.llm._errors import __all__ as _errors

__all__ = [*_errors]

publish(globals(), __all__)
del publish
