"""Pieces of networks for torch: operators with gradients, modules, and accelerate() for models.

>>> import torch, kernwright.torch
>>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64))
>>> print(kernwright.torch.accelerate(model))
1 module runs on kernwright:
  1: LayerNorm

The functions have torch's names and arguments, take and return tensors, and are operators of torch
(torch.ops.kernwright): they differentiate, compile with torch.compile and run in CUDA graphs. They
work on torch's memory and torch's current stream, and torch allocates what they return.

torch is imported with this module, and needed by nothing else of the package.
"""

try:
    import torch as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        "kernwright.torch needs torch, which is not installed: pip install torch", name="torch"
    ) from error

from kernwright.torch import (
    _accelerate,
    _attention,
    _cache,
    _embedding,
    _gates,
    _linear,
    _loss,
    _modules,
    _norm,
    _optimizer,
    _rope,
    _softmax,
)
from kernwright.torch._accelerate import *
from kernwright.torch._attention import *
from kernwright.torch._cache import *
from kernwright.torch._embedding import *
from kernwright.torch._gates import *
from kernwright.torch._linear import *
from kernwright.torch._loss import *
from kernwright.torch._modules import *
from kernwright.torch._norm import *
from kernwright.torch._optimizer import *
from kernwright.torch._rope import *
from kernwright.torch._softmax import *

__all__ = [
    *_accelerate.__all__,
    *_attention.__all__,
    *_cache.__all__,
    *_embedding.__all__,
    *_gates.__all__,
    *_linear.__all__,
    *_loss.__all__,
    *_modules.__all__,
    *_norm.__all__,
    *_optimizer.__all__,
    *_rope.__all__,
    *_softmax.__all__,
]
