"""Language models: files in, text out, on kernels that are strings."""

from kernwright.llm._errors import ContextError as ContextError
from kernwright.llm._errors import ModelError as ModelError
from kernwright.llm._step import Rotation as Rotation
from kernwright.llm._step import Step as Step
from kernwright.llm._step import WholeStep as WholeStep
