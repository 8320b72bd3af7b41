"""Language models: files in, text out, on kernels that are strings."""

from kernwright.llm._errors import ContextError as ContextError
from kernwright.llm._errors import ModelError as ModelError
