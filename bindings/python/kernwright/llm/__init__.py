"""Language models: files in, text out, on kernels that are strings.

>>> from kernwright import llm
>>> issubclass(llm.ContextError, llm.ModelError)
True
"""

from kernwright._support.typed import publish
from kernwright.llm import models
from kernwright.llm._adapters.files import Adapter
from kernwright.llm._batching.engine import *
from kernwright.llm._batching.engine import __all__ as _engine
from kernwright.llm._batching.request import *
from kernwright.llm._batching.request import __all__ as _request
from kernwright.llm._chat.template import *
from kernwright.llm._chat.template import __all__ as _template
from kernwright.llm._choice import *
from kernwright.llm._choice import __all__ as _choice
from kernwright.llm._config import *
from kernwright.llm._config import __all__ as _config
from kernwright.llm._draft import *
from kernwright.llm._draft import __all__ as _draft
from kernwright.llm._errors import *
from kernwright.llm._errors import __all__ as _errors
from kernwright.llm._load import *
from kernwright.llm._load import __all__ as _load
from kernwright.llm._model import *
from kernwright.llm._model import __all__ as _model
from kernwright.llm._parse.parser import *
from kernwright.llm._parse.parser import __all__ as _parser
from kernwright.llm._quantize import *
from kernwright.llm._quantize import __all__ as _quantize
from kernwright.llm._registry import *
from kernwright.llm._registry import __all__ as _registry
from kernwright.llm._snapshot import *
from kernwright.llm._snapshot import __all__ as _snapshot
from kernwright.llm._step import *
from kernwright.llm._step import __all__ as _step
from kernwright.llm._text.stop import *
from kernwright.llm._text.stop import __all__ as _stop
from kernwright.llm._text.stream import *
from kernwright.llm._text.stream import __all__ as _stream
from kernwright.llm._text.tokenizer import *
from kernwright.llm._text.tokenizer import __all__ as _tokenizer
from kernwright.llm._weights.memory import Memory
from kernwright.llm.models._layers import Unread

__all__ = [
    *_engine,
    *_request,
    *_config,
    *_errors,
    *_choice,
    *_draft,
    *_load,
    *_model,
    *_quantize,
    *_registry,
    *_snapshot,
    *_step,
    *_stop,
    *_stream,
    *_template,
    *_tokenizer,
    "Adapter",
    "Memory",
    "Unread",
    "models",
    *_parser,
]

publish(globals(), __all__)
del publish
