"""Optimisers: one launch for many tensors, in place."""

from kernwright.optim._accumulate import Accumulator as Accumulator
from kernwright.optim._average import EMA as EMA
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
from kernwright.optim._loss_scale import LossScale as LossScale
from kernwright.optim._muon import Muon as Muon
from kernwright.optim._muon import newton_schulz as newton_schulz
from kernwright.optim._schedules import Schedule as Schedule
from kernwright.optim._schedules import constant as constant
from kernwright.optim._schedules import cosine as cosine
from kernwright.optim._schedules import linear as linear
from kernwright.optim._schedules import wsd as wsd
