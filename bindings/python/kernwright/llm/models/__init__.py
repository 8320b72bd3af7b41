"""Families of models, one file each, and the layers that they are made of."""

from kernwright.llm.models._layers import *
from kernwright.llm.models._layers import __all__ as _layers
from kernwright.llm.models.deepseek import *
from kernwright.llm.models.deepseek import __all__ as _deepseek
from kernwright.llm.models.gemma import *
from kernwright.llm.models.gemma import __all__ as _gemma
from kernwright.llm.models.glm import *
from kernwright.llm.models.glm import __all__ as _glm
from kernwright.llm.models.gpt2 import *
from kernwright.llm.models.gpt2 import __all__ as _gpt2
from kernwright.llm.models.gpt_oss import *
from kernwright.llm.models.gpt_oss import __all__ as _gpt_oss
from kernwright.llm.models.granite import *
from kernwright.llm.models.granite import __all__ as _granite
from kernwright.llm.models.llama import *
from kernwright.llm.models.llama import __all__ as _llama
from kernwright.llm.models.mimo import *
from kernwright.llm.models.mimo import __all__ as _mimo
from kernwright.llm.models.mixtral import *
from kernwright.llm.models.mixtral import __all__ as _mixtral
from kernwright.llm.models.olmo import *
from kernwright.llm.models.olmo import __all__ as _olmo
from kernwright.llm.models.phi import *
from kernwright.llm.models.phi import __all__ as _phi
from kernwright.llm.models.qwen import *
from kernwright.llm.models.qwen import __all__ as _qwen
from kernwright.llm.models.smollm import *
from kernwright.llm.models.smollm import __all__ as _smollm
from kernwright.llm.models.starcoder import *
from kernwright.llm.models.starcoder import __all__ as _starcoder

__all__ = [
    *_layers,
    *_deepseek,
    *_gemma,
    *_glm,
    *_gpt2,
    *_gpt_oss,
    *_granite,
    *_llama,
    *_mimo,
    *_mixtral,
    *_olmo,
    *_phi,
    *_qwen,
    *_smollm,
    *_starcoder,
]
