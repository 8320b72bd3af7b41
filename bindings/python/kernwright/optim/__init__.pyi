"""Optimisers: one launch for many tensors, in place."""

from kernwright.optim._classes import SGD as SGD
from kernwright.optim._classes import Adam as Adam
from kernwright.optim._classes import AdamW as AdamW
from kernwright.optim._classes import Lion as Lion
from kernwright.optim._functions import adam as adam
from kernwright.optim._functions import adamw as adamw
from kernwright.optim._functions import clip_grad_norm as clip_grad_norm
from kernwright.optim._functions import clip_scale as clip_scale
from kernwright.optim._functions import grad_norm as grad_norm
from kernwright.optim._functions import lion as lion
from kernwright.optim._functions import sgd as sgd
