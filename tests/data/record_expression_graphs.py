"""Writes expression_graphs.npz: values and gradients of random expression graphs by torch.

    PYTHONPATH=tests/python python tests/data/record_expression_graphs.py

with torch (2.15 was used) on the CPU in float64, and kernwright, whose functions the graphs name.
"""

import pathlib
import zlib

import expression_graphs
import numpy as np
import torch
from torch.nn import functional

SEEDS = 60


def dominant(x):
    return x + 4 * torch.eye(x.shape[-1], dtype=x.dtype)


def gather(x, axis, places):
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    at = torch.tensor(places).reshape(-1, *(1,) * (x.ndim - axis - 1)).broadcast_to(shape)
    return torch.take_along_dim(x, at, axis)


STEPS = {
    "scale": lambda x, by: x * by,
    "shift": lambda x, by: x + by,
    "softplus": functional.softplus,
    "silu": functional.silu,
    "where": lambda a, b: torch.where(a > b, a * 2, b),
    "max": lambda x, axis, keep: x.amax(axis, keep),
    "min": lambda x, axis, keep: x.amin(axis, keep),
    "var": lambda x, axis, keep: x.var(axis, correction=0, keepdim=keep),
    "norm": lambda x, axis, keep: torch.linalg.vector_norm(x, dim=axis, keepdim=keep),
    "cumulative_prod": torch.cumprod,
    "cumulative_sum": torch.cumsum,
    "sort": lambda x, axis: x.sort(axis).values,
    "flip": lambda x, axis: x.flip(axis),
    "reversed": lambda x, axis: x.flip(axis),
    "roll": lambda x, axis: x.roll(1, axis),
    "rows": lambda x, axis, places: x.index_select(axis, torch.tensor(places)),
    "gather": gather,
    "permute_dims": lambda x, order: x.permute(order),
    "part": lambda x, first: x[first:],
    "expand_dims": torch.unsqueeze,
    "concat": lambda a, b: torch.cat([a, b]),
    "stack": lambda a, b: torch.stack([a, b]),
    "rows_by_rows": lambda a, b: torch.einsum("...ij,kj->...ik", a, b),
    "gram": lambda x: x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype),
    "dominant": dominant,
    "slogdet": lambda x: torch.linalg.slogdet(x).logabsdet,
    "cholesky": torch.linalg.cholesky,
    **{name: getattr(torch.linalg, name) for name in ("det", "inv", "solve")},
    "i0": torch.special.i0,
}


def main():
    numbers, marks = [], []
    for seed in range(SEEDS):
        graph = expression_graphs.expression(seed)
        inputs = [torch.tensor(each, requires_grad=True) for each in graph.inputs]
        value = expression_graphs.value(graph, inputs, STEPS, torch)
        found = torch.autograd.grad(value, inputs, allow_unused=True, materialize_grads=True)
        numbers += [value.detach().reshape(1), *(each.reshape(-1) for each in found)]
        marks.append(zlib.crc32(repr(graph.steps).encode()))
    path = pathlib.Path(__file__).with_name("expression_graphs.npz")
    numbers = np.asarray(torch.cat(numbers).tolist())
    np.savez_compressed(path, numbers=numbers, marks=np.array(marks, np.uint32))


main()
