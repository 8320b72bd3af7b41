"""Language models: files in, text out, on kernels that are strings."""

from kernwright.llm import models as models
from kernwright.llm._batching.engine import Engine as Engine
from kernwright.llm._batching.request import Request as Request
from kernwright.llm._chat.template import ChatTemplate as ChatTemplate
from kernwright.llm._choice import Completion as Completion
from kernwright.llm._choice import Piece as Piece
from kernwright.llm._config import Config as Config
from kernwright.llm._errors import ContextError as ContextError
from kernwright.llm._errors import EngineClosed as EngineClosed
from kernwright.llm._errors import ModelError as ModelError
from kernwright.llm._errors import QueueFull as QueueFull
from kernwright.llm._load import load as load
from kernwright.llm._model import Model as Model
from kernwright.llm._parse.parser import MessageParser as MessageParser
from kernwright.llm._parse.parser import MessagePart as MessagePart
from kernwright.llm._parse.parser import parse_message as parse_message
from kernwright.llm._registry import known_architectures as known_architectures
from kernwright.llm._registry import register as register
from kernwright.llm._step import Rotation as Rotation
from kernwright.llm._step import Step as Step
from kernwright.llm._step import WholeStep as WholeStep
from kernwright.llm._text.stop import StopCheck as StopCheck
from kernwright.llm._text.stop import StopStrings as StopStrings
from kernwright.llm._text.stream import TextStream as TextStream
from kernwright.llm._text.tokenizer import Tokenizer as Tokenizer
from kernwright.llm.models._layers import Unread as Unread
