"""Small sessions that several suites run."""

import numpy as np

from kernwright import Out
from kernwright.tune import Session, Space

SCALE = r"""
__global__ void scale(const float* x, float* y, float a, int n) {
  int i = (blockIdx.x * BLOCK + threadIdx.x) * VEC;
  for (int k = 0; k < VEC; k++) if (i + k < n) y[i + k] = a * x[i + k];
}
"""
N = 1000
X = np.random.default_rng(7).random(N).astype(np.float32)
LAUNCH = {"grid": "-(-n // (BLOCK * VEC))", "block": "BLOCK"}


def space(**more):
    return Space(BLOCK=[32, 64, 128], VEC=[1, 2], **more)


def arguments():
    return X.copy(), Out(np.zeros(N, np.float32)), 2.0, N


def expected(x, y, a, n):
    return None, a * x, None, None


def session(text=SCALE, of=None, args=None, **more):
    options = {**LAUNCH, "verify": expected, **more}
    return Session(text, of or space(), arguments() if args is None else args, **options)


def statuses(of):
    return {tuple(trial.config.values()): trial.status for trial in of.trials}
