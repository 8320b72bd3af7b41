"""The benchmarks of this package: what a device can do with plain kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._benchmark import Benchmark, Case, benchmark

_TYPES = {"float32": "float", "float64": "double"}
_BLOCK = 256
# On the simulated device a thread costs about a microsecond: counts need no large arrays.
_SIZES = {"stream": (2**20, 2**24, 2**26), "matrix": (1024, 4096), "product": (512, 2048)}
_SIM_SIZES = {"stream": (2**12, 2**14), "matrix": (64, 128), "product": (32, 64)}

_SOURCE = r"""
template <typename T> __global__ void copy(const T* x, T* y, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
template <typename T> __global__ void axpy(T a, const T* x, T* y, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
template <typename T> __global__ void sum(const T* x, T* total, long long n) {
  __shared__ T part[32];
  const long long step = (long long)gridDim.x * blockDim.x;
  T own = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    own += x[i];
  for (int d = 16; d > 0; d /= 2) own += __shfl_down_sync(0xffffffffu, own, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  own = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : T(0);
  for (int d = 16; d > 0; d /= 2) own += __shfl_down_sync(0xffffffffu, own, d);
  if (threadIdx.x == 0) atomicAdd(total, own);
}
template <typename T> __global__ void transpose(const T* x, T* y, int n) {
  __shared__ T tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int d = 0; d < 32; d += 8)
    if (column < n && row + d < n) tile[threadIdx.y + d][threadIdx.x] = x[(row + d) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int d = 0; d < 32; d += 8)
    if (column < n && row + d < n) y[(row + d) * n + column] = tile[threadIdx.x][threadIdx.y + d];
}
template <typename T> __global__ void gemm(const T* a, const T* b, T* c, int n) {
  __shared__ T left[16][16], right[16][16];
  const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  T own = 0;
  for (int k = 0; k < n; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) own += left[threadIdx.y][j] * right[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = own;
}
"""


def _kernel(name: str, dtype: str) -> Any:
    if dtype not in _TYPES:
        raise kw.InvalidArgument(f"dtype {dtype!r}: it is one of {', '.join(_TYPES)}")
    return kw.module(_SOURCE)[f"{name}<{_TYPES[dtype]}>"]


def _values(count: int, dtype: str) -> Any:
    """Small whole numbers, whose sums and products are exact."""
    return (np.arange(count) % 7).astype(dtype)


def _same(array: Any, expected: Any) -> bool:
    return bool(np.array_equal(array.numpy(), expected))


def _copy(n: int, dtype: str) -> Case:
    kernel, values = _kernel("copy", dtype), _values(n, dtype)
    x, y = kw.asarray(values), kw.zeros(n, dtype=dtype)
    launch = kernel[-(-n // _BLOCK), _BLOCK]
    return Case(lambda: launch(x, y, n), 2 * x.nbytes, check=lambda: _same(y, values))


def _axpy(n: int, dtype: str) -> Case:
    kernel, values = _kernel("axpy", dtype), _values(n, dtype)
    x, y = kw.asarray(values), kw.zeros(n, dtype=dtype)
    launch = kernel[-(-n // _BLOCK), _BLOCK]
    return Case(
        lambda: launch(2.0, x, y, n), 3 * x.nbytes, 2 * n, check=lambda: _same(y, 2 * values)
    )


def _sum(n: int, dtype: str) -> Case:
    kernel, values = _kernel("sum", dtype), _values(n, dtype) % 2
    x, total = kw.asarray(values), kw.zeros(1, dtype=dtype)
    blocks = min(-(-n // _BLOCK), 8 * kw.current_device().attributes["multiprocessor_count"])
    launch = kernel[blocks, _BLOCK]
    # Sums of float32 are exact up to 2^24, whatever their order; beyond, nearly.
    expected = float(values.sum(dtype="float64"))
    return Case(
        lambda: launch(x, total, n), x.nbytes, n,
        check=lambda: abs(total.item() - expected) <= 1e-5 * expected,
    )  # fmt: skip


def _transpose(n: int, dtype: str) -> Case:
    kernel, values = _kernel("transpose", dtype), _values(n * n, dtype).reshape(n, n)
    x, y = kw.asarray(values), kw.zeros((n, n), dtype=dtype)
    tiles = -(-n // 32)
    launch = kernel[(tiles, tiles), (32, 8)]
    return Case(lambda: launch(x, y, n), 2 * x.nbytes, check=lambda: _same(y, values.T))


def _gemm(n: int, dtype: str) -> Case:
    if n % 16:
        raise kw.InvalidArgument(f"gemm wants n as a multiple of 16, got {n}")
    kernel, values = _kernel("gemm", dtype), _values(n * n, dtype).reshape(n, n)
    a, b, c = kw.asarray(values), kw.asarray(values.T.copy()), kw.zeros((n, n), dtype=dtype)
    launch = kernel[(n // 16, n // 16), (16, 16)]
    return Case(
        lambda: launch(a, b, c, n), 3 * a.nbytes, 2 * n**3,
        check=lambda: _same(c, values @ values.T),
    )  # fmt: skip


def suite() -> list[Benchmark]:
    """With sizes that suit the current device."""
    sizes = _SIM_SIZES if kw.current_device().is_simulated else _SIZES
    functions = [
        (_copy, "stream"), (_axpy, "stream"), (_sum, "stream"), (_transpose, "matrix"),
        (_gemm, "product"),
    ]  # fmt: skip
    return [
        benchmark(function, name=function.__name__[1:], n=sizes[kind], dtype=["float32"])
        for function, kind in functions
    ]
