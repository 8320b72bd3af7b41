"""Tensors of tests of kernwright.torch, on the device of the run; torch is installed."""

import numpy as np
import torch

import kernwright as kw

DEVICE = "cpu" if kw.current_device().is_simulated else "cuda"
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
DTYPES = list(TOLERANCE)


def rand(*shape, dtype=torch.float64, seed=0, grad=True):
    values = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return torch.tensor(values, dtype=dtype, device=DEVICE, requires_grad=grad)


def ids(count, *shape, seed=0):
    values = np.random.default_rng([seed, *shape]).integers(0, count, shape)
    return torch.tensor(values, device=DEVICE)


def rms(x, weight, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def close(got, want, dtype, factor=1):
    assert got.shape == want.shape
    off = (got.double() - want.double()).norm()
    assert off <= factor * TOLERANCE[dtype] * want.double().norm() + 1e-30, (off, want.norm())
