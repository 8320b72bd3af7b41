"""Honest kernels drawn at random, with blocks that work together (judge_drawn.py)."""

import ml_dtypes
import numpy as np

import kernwright as kw

SHAPES = ((9, 300), (1, 1), (3, 31), (2, 32), (5, 33), (4, 64), (3, 100), (1, 257))


def size_inputs(dtypes, lengths, scale=1.0):
    """`dtypes`: of the arrays of n elements; then n itself."""

    def inputs(seed, case):
        rng = np.random.default_rng([seed, case])
        n = lengths[case % len(lengths)]
        made = []
        for dtype in dtypes:
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            if kind.kind in "iub":
                made.append(rng.integers(0, 2 if kind.kind == "b" else 50, n).astype(kind))
            else:
                made.append((rng.standard_normal(n) * scale).astype(kind))
        return (*made, n)

    return inputs


def sizes(rng):
    return [rng.choice((1000, 1500, 2049)), 1, rng.randint(2, 31), 32, 33, 255, 257, 777]


def matrix_inputs(shapes, dtype="float32"):
    def inputs(seed, case):
        r = np.random.default_rng([seed, case])
        n, m = shapes[case]
        return r.standard_normal((n, m)).astype(dtype), np.zeros((n, m), dtype), n, m

    return inputs


def rows(rng):
    block = rng.choice((32, 64, 128))
    fold = f"""__device__ float fold(float v, bool most) {{
  __shared__ float part[{max(1, block // 32)}];
  for (int d = 16; d > 0; d /= 2)
    {{ float o = __shfl_xor_sync(~0u, v, d); v = most ? fmaxf(v, o) : v + o; }}
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int k = 1; k < {max(1, block // 32)}; ++k) v = most ? fmaxf(v, part[k]) : v + part[k];
  return v;
}}
"""
    kinds = {
        "softmax": (
            (
                "float top = -3.4e38f, sum = 0; LOOP top = fmaxf(top, a[j]); top = "
                "fold(top, true); LOOP sum += expf(a[j] - top); sum = fold(sum, false); "
                "LOOP b[j] = expf(a[j] - top) / sum;"
            ),
            lambda x: (
                np.exp(x - x.max(1, keepdims=True))
                / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
            ),
        ),
        "log_softmax": (
            (
                "float top = -3.4e38f, sum = 0; LOOP top = fmaxf(top, a[j]); top = "
                "fold(top, true); LOOP sum += expf(a[j] - top); sum = logf(fold(sum, "
                "false)); LOOP b[j] = a[j] - top - sum;"
            ),
            lambda x: (
                x
                - x.max(1, keepdims=True)
                - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
            ),
        ),
        "layer_norm": (
            (
                "float s = 0, q = 0; LOOP s += a[j]; float mean = fold(s, false) / m; "
                "LOOP { float d = a[j] - mean; q += d * d; } float r = rsqrtf(fold(q, "
                "false) / m + 1e-5f); LOOP b[j] = (a[j] - mean) * r;"
            ),
            lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
        ),
        "rms": (
            (
                "float q = 0; LOOP q += a[j] * a[j]; float r = rsqrtf(fold(q, false) / m "
                "+ 1e-5f); LOOP b[j] = a[j] * r;"
            ),
            lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
        ),
        "center": (
            "float s = 0; LOOP s += a[j]; s = fold(s, false) / m; LOOP b[j] = a[j] - s;",
            lambda x: x - x.mean(1, keepdims=True),
        ),
    }
    name = rng.choice(sorted(kinds))
    body, f = kinds[name]
    body = body.replace("LOOP", "for (int j = threadIdx.x; j < m; j += blockDim.x)")
    text = (
        f"{fold}__global__ void run(const float* __restrict__ x, float* y, int "
        f"n, int m) "
        f"{{\n  const float* a = x + (size_t)blockIdx.x * m;\n"
        f"  float* b = y + (size_t)blockIdx.x * m;\n  {body}\n}}"
    )
    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n, int m",
        inputs=matrix_inputs(SHAPES),
        reference=lambda x, y, n, m, f=f: (None, f(x.astype("f8")), None, None),
        grid=lambda x, y, n, m: n, block=block, rtol=1e-4, atol=2e-5,
    )  # fmt: skip
    return f"rows_{name}_{block}", text, task


def scan(rng):
    block = rng.choice((64, 128, 256))
    way = rng.randrange(3)
    if way == 0:  # Hillis and Steele in shared memory, one block
        body = f"""__shared__ int a[2][{block}];
  int before = 0;
  for (int at = 0; at < n; at += {block}) {{
    int i = at + threadIdx.x, from = 0;
    a[0][threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < {block}; d *= 2) {{
      a[1 - from][threadIdx.x] = a[from][threadIdx.x] + (threadIdx.x >= d ?
        a[from][threadIdx.x - d] : 0);
      from = 1 - from;
      __syncthreads();
    }}
    if (i < n) y[i] = before + a[from][threadIdx.x];
    before += a[from][{block} - 1];
    __syncthreads();
  }}"""
        head, grid = "", 1
    elif way == 1:  # warps by shuffles
        body = f"""__shared__ int sums[{block // 32}];
  int before = 0, lane = threadIdx.x % 32, w = threadIdx.x / 32;
  for (int at = 0; at < n; at += {block}) {{
    int i = at + threadIdx.x, v = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {{ int o = __shfl_up_sync(~0u, v, d); if (lane >= d) v += o; }}
    if (lane == 31) sums[w] = v;
    __syncthreads();
    int all = 0;
    for (int k = 0; k < {block // 32}; ++k) {{ if (k < w) v += sums[k]; all += sums[k]; }}
    if (i < n) y[i] = before + v;
    before += all;
    __syncthreads();
  }}"""
        head, grid = "", 1
    else:  # decoupled look-back over tiles in the order of tickets
        head = (
            "__device__ unsigned ticket, left;\n__device__ volatile int "
            "prefix[64];\n__device__ volatile int known[64];\n"
        )
        body = f"""__shared__ int tile, base, sums[{block // 32}];
  if (threadIdx.x == 0) tile = atomicAdd(&ticket, 1u);
  __syncthreads();
  int i = tile * {block} + threadIdx.x, v = i < n ? x[i] : 0, lane = threadIdx.x %
    32, w = threadIdx.x / 32;
  for (int d = 1; d < 32; d *= 2) {{ int o = __shfl_up_sync(~0u, v, d); if (lane >= d) v += o; }}
  if (lane == 31) sums[w] = v;
  __syncthreads();
  int all = 0;
  for (int k = 0; k < {block // 32}; ++k) {{ if (k < w) v += sums[k]; all += sums[k]; }}
  if (threadIdx.x == 0) {{
    int before = 0;
    if (tile > 0)

        {{
          while (atomicAdd((int*)&known[tile - 1], 0) == 0) {{}}
          __threadfence();
          before = prefix[tile - 1];
        }}
    base = before;
    prefix[tile] = before + all;
    __threadfence();
    atomicExch((int*)&known[tile], 1);
  }}
  __syncthreads();
  if (i < n) y[i] = base + v;
  if (threadIdx.x == 0) {{
    __threadfence();
    if (atomicAdd(&left, 1u) == gridDim.x - 1) {{
      __threadfence();
      for (int k = 0; k < gridDim.x; ++k) known[k] = 0;
      atomicExch(&left, 0u);
      atomicExch(&ticket, 0u);
    }}
  }}"""
        grid = lambda x, y, n, b=block: -(-n // b)  # noqa: E731
    text = f"{head}__global__ void run(const int* x, int* y, int n) {{\n  {body}\n}}"
    task = kw.Task(
        entry="run", signature="const int* x, int* y, int n",
        inputs=size_inputs(["int32", "int32"], sizes(rng)),
        reference=lambda x, y, n: (None, np.cumsum(x.astype("i8")), None), grid=grid, block=block,
    )  # fmt: skip
    return f"scan_{way}_{block}", text, task


def transpose(rng):
    tile, pad = rng.choice((8, 16, 32)), rng.choice((0, 1))
    high = rng.choice([h for h in (4, 8, 16, 32) if h <= tile])
    text = f"""template <int TILE, int ROWS> __device__ void move(const float* x, float* y, int n,
  int m) {{
  __shared__ float t[TILE][TILE + {pad}];
  int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS) if (r + k < n && c < m) t[threadIdx.y +
    k][threadIdx.x] = x[(r + k) * m + c];
  __syncthreads();
  c = blockIdx.y * TILE + threadIdx.x; r = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS) if (r + k < m && c < n) y[(r + k) * n + c] =
    t[threadIdx.x][threadIdx.y + k];
}}
__global__ void run(const float* x, float* y, int n, int m) {{
  move<{tile}, {high}>(x, y, n, m);
}}"""

    def inputs(seed, case):
        x, _, n, m = matrix_inputs(SHAPES)(seed, case)
        return x, np.zeros((m, n), "f4"), n, m

    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n, int m", inputs=inputs,
        reference=lambda x, y, n, m: (None, x.T, None, None),
        grid=lambda x, y, n, m: (-(-m // tile), -(-n // tile)), block=(tile, high),
    )  # fmt: skip
    return f"transpose_{tile}_{high}_{pad}", text, task


def product(rng):
    way = rng.randrange(3)
    tile = rng.choice((8, 16))
    if way == 2:
        text = """#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
__global__ void run(const __half* a, const __half* b, float* c, int n, int m, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + row * k + i, k);
    wmma::load_matrix_sync(fb, b + i * m + col, m);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + row * m + col, fc, m, wmma::mem_row_major);
}"""
        shapes = ((48, 32, 64), (16, 16, 16), (16, 32, 16), (32, 16, 48))
        dtype, kind, tile, block = "f2", "__half", 16, 32
    else:
        body = """float sum = 0;
  for (int i = 0; i < k; ++i) sum = fmaf(row < n ? a[row * k + i] : 0.f, col < m ? b[i *
    m + col] : 0.f, sum);
  if (row < n && col < m) c[row * m + col] = sum;"""
        if way == 1:
            body = """__shared__ float p[TILE][TILE + 1], q[TILE][TILE];
  float sum = 0;
  for (int at = 0; at < k; at += TILE) {
    p[threadIdx.y][threadIdx.x] = row < n && at + threadIdx.x < k ? a[row * k + at +
      threadIdx.x] : 0.f;
    q[threadIdx.y][threadIdx.x] = at + threadIdx.y < k && col < m ? b[(at + threadIdx.y)
      * m + col] : 0.f;
    __syncthreads();
    #pragma unroll
    for (int t = 0; t < TILE; ++t) sum += p[threadIdx.y][t] * q[t][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < m) c[row * m + col] = sum;"""
        text = (
            f"#define TILE {tile}\n__global__ void run(const float* a, const float* "
            f"b, float* c, int n, int m, int k) "
            f"{{\n  int row = blockIdx.y * TILE + threadIdx.y;\n"
            f"  int col = blockIdx.x * TILE + threadIdx.x;\n  {body}\n}}"
        )
        shapes = ((40, 36, 50), (1, 1, 1), (16, 16, 16), (17, 15, 33))
        dtype, kind, block = "f4", "float", (tile, tile)

    def inputs(seed, case):
        r = np.random.default_rng([seed, case])
        n, m, k = shapes[case]
        a, b = (r.standard_normal(s).astype(dtype) for s in ((n, k), (k, m)))
        return a, b, np.zeros((n, m), "f4"), n, m, k

    task = kw.Task(
        entry="run", signature=f"const {kind}* a, const {kind}* b, float* c, int n, int m, int k",
        inputs=inputs, cases=4, block=block, rtol=1e-3, atol=1e-3,
        reference=lambda a, b, c, n, m, k: (
            *(None, None), a.astype("f8") @ b.astype("f8"), *(None, None, None)),
        grid=lambda a, b, c, n, m, k: (-(-m // tile), -(-n // tile)),
        flops=lambda a, b, c, n, m, k: 2 * n * m * k,
        bytes=lambda a, b, c, n, m, k: a.nbytes + b.nbytes + c.nbytes,
    )  # fmt: skip
    return f"product_{way}_{tile}", text, task


def stencil(rng):
    block = rng.choice((32, 64, 256))
    radius = rng.choice((1, 2))
    width = 2 * radius + 1
    if rng.random() < 0.5:
        body = (
            f"if (i < n) "
            f"{{ float s = 0; for (int k = -{radius}; k <= {radius}; ++k) "
            f"s += x[min(max(i + k, 0), n - 1)]; y[i] = s / {width}; }}"
        )
    else:
        body = (
            f"__shared__ float p[{block} + 2 * {radius}]; for (int k = threadIdx.x; "
            f"k < {block} + 2 * {radius}; k += {block}) p[k] = "
            f"x[min(max((int)blockIdx.x * {block} + k - {radius}, 0), n - 1)]; "
            f"__syncthreads(); if (i < n) "
            f"{{ float s = 0; for (int k = 0; k < {width}; ++k) s += p[threadIdx.x + k]; "
            f"y[i] = s / {width}; }}"
        )
    text = (
        f"__global__ void run(const float* x, float* y, int n) "
        f"{{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}"
    )

    def reference(x, y, n):
        wide = np.pad(x.astype("f8"), radius, "edge")
        return None, sum(wide[k : k + n] for k in range(width)) / width, None

    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n", reference=reference,
        inputs=size_inputs(["float32"] * 2, sizes(rng)), block=block, rtol=1e-4, atol=1e-5,
        grid=lambda x, y, n: -(-n // block),
    )  # fmt: skip
    return f"stencil_{block}_{radius}", text, task


def grouped(rng):
    """Cooperative groups and cooperative launches."""
    way = rng.randrange(3)
    head = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    more = {}
    if way == 0:
        text = (
            head
            + """__global__ void run(const float* x, float* y, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i];
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = 2 * y[i] + 1;
}"""
        )
        more = {"cooperative": True, "grid": 3, "block": 64}
    elif way == 1:
        text = (
            head
            + """__global__ void run(const float* x, float* y, int n) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0;
  float own = tile.shfl(v, tile.thread_rank());
  tile.sync();
  if (i < n) y[i] = 2 * own + 1;
}"""
        )
    else:
        text = (
            head
            + """__global__ void run(const float* x, float* y, int n) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ float part[256];
  int i = block.group_index().x * block.size() + block.thread_rank();
  part[block.thread_rank()] = i < n ? x[i] : 0;
  block.sync();
  if (i < n) { auto active = cg::coalesced_threads(); y[i] = 2 *
    part[block.thread_rank()] + (active.size() > 0); }
}"""
        )
    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n", rtol=1e-5, atol=1e-5,
        inputs=size_inputs(["float32"] * 2, sizes(rng)),
        reference=lambda x, y, n: (None, 2 * x.astype("f8") + 1, None), **more,
    )  # fmt: skip
    return f"grouped_{way}", text, task
