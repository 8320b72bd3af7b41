"""A KernelBench-style task: softmax over the rows of a matrix.

With torch, `Model` would be a torch.nn.Module; NumPy is enough here.
"""

import numpy as np


class Model:
    def forward(self, x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


def get_inputs():
    return [np.random.standard_normal((64, 300)).astype(np.float32)]


def get_init_inputs():
    return []


# Required of a submission: this kernel name, these parameters, a block of 128 threads for each row.
ENTRY = "softmax"
SIGNATURE = "const float* x, float* out, int rows, int columns"
GRID = lambda x, out, rows, columns: rows  # noqa: E731
BLOCK = 128
# The sizes of the cases; None means the full inputs.
CUTS = [None, (1, 1), (3, 31), (2, 32), (5, 33), (4, 127), (2, 128), (7, 129)]
