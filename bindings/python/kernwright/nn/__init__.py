"""What neural networks are made of: functions of arrays, each a kernel or two.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.array([[0.0, 0.0], [1.0, 1.0]], np.float32))
>>> kw.nn.softmax(x).numpy().tolist()
[[0.5, 0.5], [0.5, 0.5]]
>>> kw.nn.relu(kw.asarray(np.array([-1.0, 2.0], np.float32))).numpy().tolist()
[0.0, 2.0]
"""

from kernwright._support.names import missing as _missing
from kernwright._support.typed import publish
from kernwright.nn import (
    _activations,
    _attention,
    _attention_backward,
    _attention_paged,
    _batch_norm,
    _cache,
    _conv,
    _embedding,
    _experts,
    _fused_matmul,
    _gates,
    _linear,
    _losses,
    _modules,
    _norm,
    _norm_backward,
    _positions,
    _quantize,
    _recurrent,
    _rope,
    _sampling,
    _scaled,
    _softmax,
    _spatial,
)
from kernwright.nn._activations import *
from kernwright.nn._attention import *
from kernwright.nn._attention_backward import *
from kernwright.nn._attention_paged import *
from kernwright.nn._batch_norm import *
from kernwright.nn._cache import *
from kernwright.nn._conv import *
from kernwright.nn._embedding import *
from kernwright.nn._experts import *
from kernwright.nn._fused_matmul import *
from kernwright.nn._gates import *
from kernwright.nn._linear import *
from kernwright.nn._losses import *
from kernwright.nn._modules import *
from kernwright.nn._norm import *
from kernwright.nn._norm_backward import *
from kernwright.nn._positions import *
from kernwright.nn._quantize import *
from kernwright.nn._recurrent import *
from kernwright.nn._rope import *
from kernwright.nn._sampling import *
from kernwright.nn._scaled import *
from kernwright.nn._softmax import *
from kernwright.nn._spatial import *

__all__ = [
    *_activations.__all__,
    *_attention.__all__,
    *_attention_backward.__all__,
    *_attention_paged.__all__,
    *_batch_norm.__all__,
    *_cache.__all__,
    *_conv.__all__,
    *_embedding.__all__,
    *_fused_matmul.__all__,
    *_experts.__all__,
    *_gates.__all__,
    *_linear.__all__,
    *_losses.__all__,
    *_modules.__all__,
    *_norm.__all__,
    *_norm_backward.__all__,
    *_positions.__all__,
    *_quantize.__all__,
    *_recurrent.__all__,
    *_rope.__all__,
    *_sampling.__all__,
    *_scaled.__all__,
    *_softmax.__all__,
    *_spatial.__all__,
]

publish(globals(), __all__)
del publish


def __getattr__(name: str) -> object:
    if name not in ("init", "quant"):
        raise _missing(__name__, name, __dir__())
    import importlib

    return importlib.import_module(f"kernwright.nn.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, "init", "quant"])
