"""Some 200 right kernels in the styles of people and programs, with their tasks.

`kernels()` gives (name, text, task); bench/judge.py judges all of them, a test some.
"""

import itertools

import numpy as np

import kernwright as kw

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def task(entry, signature, inputs, reference, **more):
    return kw.Task(entry=entry, signature=signature, inputs=inputs, reference=reference, **more)


# --- element by element -------------------------------------------------------------------------

OPERATIONS = {
    "affine": ("2 * v + 1", lambda v: 2 * v + 1),
    "relu": ("v > 0 ? v : 0", lambda v: np.maximum(v, 0)),
    "square": ("v * v", lambda v: v * v),
    "negate": ("-v", lambda v: -v),
    "cube": ("v * v * v - v", lambda v: v * v * v - v),
    "less": ("v - 3", lambda v: v - 3),
    "clamp": ("v < -1 ? -1 : (v > 1 ? 1 : v)", lambda v: np.clip(v, -1, 1)),
}
STYLES = {
    "plain": (f"{INDEX}\n  if (i < n) y[i] = f(x[i]);", None),
    "early": (f"{INDEX}\n  if (i >= n) return;\n  y[i] = f(x[i]);", None),
    "stride": (
        f"{INDEX}\n  for (; i < n; i += gridDim.x * blockDim.x) y[i] = f(x[i]);",
        lambda x, y, n: 3,
    ),
    "ldg": (f"{INDEX}\n  if (i < n) y[i] = f(__ldg(x + i));", None),
    "unrolled": (
        "int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);\n#pragma unroll\n"
        "  for (int k = 0; k < 4; ++k)\n    if (i + k < n) y[i + k] = f(x[i + k]);",
        lambda x, y, n: -(-n // 1024),
    ),
    "shared": (
        f"__shared__ T part[256];\n  {INDEX}\n  if (i < n) part[threadIdx.x] = x[i];\n"
        "  __syncthreads();\n  if (i < n) y[i] = f(part[threadIdx.x]);",
        None,
    ),
}
TYPES = ("float", "double", "int")
DTYPES = {"float": "float32", "double": "float64", "int": "int32"}


def elementwise():
    for (op, (code, f)), (style, (body, grid)), kind in itertools.product(
        OPERATIONS.items(), STYLES.items(), TYPES
    ):
        text = (
            f"using T = {kind};\n__device__ T f(T v) {{ return {code}; }}\n"
            f"__global__ void map(const T* __restrict__ x, T* __restrict__ y, int n) {{\n"
            f"  {body}\n}}"
        )
        dtype = DTYPES[kind]
        inputs = kw.Inputs(x=f"{dtype}[n]", y=f"{dtype}[n]", n="size", most=3000)

        def reference(x, y, n, f=f, kind=kind):
            return None, f(x.astype(np.int64 if kind == "int" else np.float64)), None

        signature = f"const {kind}* x, {kind}* y, int n"
        yield f"{op}_{style}_{kind}", text, task("map", signature, inputs, reference, grid=grid)


def vectors():
    text = """__global__ void map(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  float4 v = x[i];
  y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}"""
    yield (
        "float4",
        text,
        task(
            "map",
            "const float4* x, float4* y, int n",
            lambda seed, case: (
                np.random.default_rng([seed, case]).random(64 * (case + 1), np.float32),
                np.zeros(64 * (case + 1), np.float32),
                64 * (case + 1),
            ),
            lambda x, y, n: (None, x.astype(np.float64) + 1, None),
        ),
    )
    for name, kind, header in (
        ("half", "__half", "cuda_fp16.h"),
        ("bfloat16", "__nv_bfloat16", "cuda_bf16.h"),
    ):
        text = f"""#include <{header}>
__global__ void map(const {kind}* x, {kind}* y, int n) {{
  {INDEX}
  if (i < n) y[i] = x[i] * x[i];
}}"""
        dtype = "float16" if name == "half" else "bfloat16"
        inputs = kw.Inputs(
            x=f"{dtype}[n]", y=f"{dtype}[n]", n="size", most=900, values=("normal", "uniform")
        )
        yield (
            name,
            text,
            task(
                "map",
                f"const {kind}* x, {kind}* y, int n",
                inputs,
                lambda x, y, n: (None, x.astype(np.float64) ** 2, None),
            ),
        )


def in_place():
    """Arrays both read and written."""
    bodies = {
        "axpy": ("if (i < n) y[i] += a * x[i];", lambda a, x, y: y + a * x),
        "blend": (
            "if (i < n) y[i] = a * y[i] + (1 - a) * x[i];",
            lambda a, x, y: a * y + (1 - a) * x,
        ),
        "atomic": ("if (i < n) atomicAdd(y + i, a * x[i]);", lambda a, x, y: y + a * x),
        "fma": ("if (i < n) y[i] = fmaf(a, x[i], y[i]);", lambda a, x, y: a * x + y),
    }
    for name, (body, f) in bodies.items():
        text = (
            f"__global__ void k(float a, const float* x, float* y, int n) {{\n{INDEX}\n{body}\n}}"
        )

        def reference(a, x, y, n, f=f):
            return None, None, f(np.float64(a), x.astype(np.float64), y.astype(np.float64)), None

        inputs = kw.Inputs(
            a="float32", x="float32[n]", y="float32[n]", n="size", most=2000, values=("uniform",)
        )
        yield (
            f"in_place_{name}",
            text,
            task("k", "float a, const float* x, float* y, int n", inputs, reference, atol=1e-5),
        )


# --- sums, extremes, histograms -----------------------------------------------------------------

TREE = """  __shared__ T part[BLOCK];
  T mine = START;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    mine = OP(mine, x[i]);
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int k = BLOCK / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] = OP(part[threadIdx.x], part[threadIdx.x + k]);
    __syncthreads();
  }
  if (threadIdx.x == 0) ATOMIC(out, part[0]);"""
WARPS = """  T mine = START;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    mine = OP(mine, x[i]);
  for (int k = 16; k > 0; k /= 2) mine = OP(mine, __shfl_down_sync(0xffffffff, mine, k));
  __shared__ T part[BLOCK / 32];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < BLOCK / 32; ++k) mine = OP(mine, part[k]);
    ATOMIC(out, mine);
  }"""
DIRECT = """  int i = blockIdx.x * BLOCK + threadIdx.x;
  for (; i < n; i += gridDim.x * BLOCK) ATOMIC(out, x[i]);"""
# The last block to arrive finishes: it counts in device memory and resets the counter.
LAST = """  __shared__ T part[BLOCK];
  T mine = START;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    mine = OP(mine, x[i]);
  part[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < BLOCK; ++k) mine = OP(mine, part[k]);
  parts[blockIdx.x] = mine;
  __threadfence();
  if (atomicAdd(&arrived, 1) != gridDim.x - 1) return;
  __threadfence();
  mine = START;
  for (int k = 0; k < gridDim.x; ++k) mine = OP(mine, *(volatile T*)&parts[k]);
  ATOMIC(out, mine);
  arrived = 0;"""
WAYS = {"tree": TREE, "warps": WARPS, "direct": DIRECT, "last": LAST}
FOLDS = {
    "sum": ("#define OP(a, b) ((a) + (b))", "0", "atomicAdd", np.sum, 0),
    "max": ("#define OP(a, b) max(a, b)", "-2147483647", "atomicMax", np.max, -(1 << 31) + 1),
    "min": ("#define OP(a, b) min(a, b)", "2147483647", "atomicMin", np.min, (1 << 31) - 1),
}


def folds():
    for (way, body), (fold, parts), block in itertools.product(
        WAYS.items(), FOLDS.items(), (64, 128, 256)
    ):
        define, start, atomic, f, initial = parts
        text = (
            f"using T = int;\n{define}\n#define START {start}\n#define ATOMIC {atomic}\n"
            f"#define BLOCK {block}\n__device__ unsigned arrived;\n__device__ T parts[4];\n"
            f"__global__ void fold(const int* x, int* out, int n) {{\n{body}\n}}"
        )

        def inputs(seed, case, initial=initial):
            rng = np.random.default_rng([seed, case])
            n = (3000, 1, 31, 32, 33, 255, 257, 1025)[case]
            return rng.integers(-1000, 1000, n, dtype=np.int32), np.array([initial], np.int32), n

        def reference(x, out, n, f=f):
            return None, [f(x.astype(np.int64))], None

        yield (
            f"{fold}_{way}_{block}",
            text,
            task("fold", "const int* x, int* out, int n", inputs, reference, grid=4, block=block),
        )


def histograms():
    shared = """  __shared__ int mine[64];
  for (int k = threadIdx.x; k < 64; k += blockDim.x) mine[k] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  for (int k = threadIdx.x; k < 64; k += blockDim.x) atomicAdd(&bins[k], mine[k]);"""
    bodies = {"global": "  if (i < n) atomicAdd(&bins[x[i]], 1);", "shared": shared}
    for (name, body), block in itertools.product(bodies.items(), (32, 128, 512)):
        text = (
            "__global__ void histogram(const unsigned char* x, int* bins, int n) {\n"
            f"  {INDEX}\n{body}\n}}"
        )

        def inputs(seed, case):
            n = (2000, 1, 7, 64, 255, 511, 1000, 1500)[case]
            rng = np.random.default_rng([seed, case])
            return rng.integers(0, 64, n, dtype=np.uint8), np.zeros(64, np.int32), n

        yield (
            f"histogram_{name}_{block}",
            text,
            task(
                "histogram",
                "const unsigned char* x, int* bins, int n",
                inputs,
                lambda x, bins, n: (None, np.bincount(x, minlength=64), None),
                grid=lambda x, bins, n, block=block: -(-n // block),
                block=block,
            ),
        )


# --- matrices -------------------------------------------------------------------------------------


def matrix_inputs(seed, case):
    n, m = ((48, 40), (1, 1), (17, 33), (32, 32), (31, 16), (1, 50), (50, 1), (16, 15))[case]
    x = np.random.default_rng([seed, case]).standard_normal((n, m)).astype(np.float32)
    return x, np.zeros((m, n), np.float32), n, m


def transposes():
    for tile, pad in itertools.product((8, 16, 32), (0, 1)):
        text = f"""__global__ void transpose(const float* x, float* y, int n, int m) {{
  __shared__ float tile[{tile}][{tile} + {pad}];
  int column = blockIdx.x * {tile} + threadIdx.x, row = blockIdx.y * {tile} + threadIdx.y;
  if (row < n && column < m) tile[threadIdx.y][threadIdx.x] = x[row * m + column];
  __syncthreads();
  column = blockIdx.y * {tile} + threadIdx.x, row = blockIdx.x * {tile} + threadIdx.y;
  if (row < m && column < n) y[row * n + column] = tile[threadIdx.x][threadIdx.y];
}}"""
        yield (
            f"transpose_{tile}_{pad}",
            text,
            task(
                "transpose",
                "const float* x, float* y, int n, int m",
                matrix_inputs,
                lambda x, y, n, m: (None, x.T, None, None),
                grid=lambda x, y, n, m, tile=tile: (-(-m // tile), -(-n // tile)),
                block=(tile, tile),
            ),
        )


def product_inputs(seed, case):
    n, m, k = ((40, 36, 50), (1, 1, 1), (16, 16, 16), (17, 15, 33), (32, 1, 7))[case]
    rng = np.random.default_rng([seed, case])
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((n, k), (k, m)))
    return a, b, np.zeros((n, m), np.float32), n, m, k


def products():
    signature = "const float* a, const float* b, float* c, int n, int m, int k"
    plain = """  if (row < n && column < m) {
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * m + column];
    c[row * m + column] = sum;
  }"""
    tiled = """  __shared__ float left[TILE][TILE], right[TILE][TILE];
  float sum = 0;
  for (int at = 0; at < k; at += TILE) {
    int i = at + threadIdx.x, j = at + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < n && i < k ? a[row * k + i] : 0;
    right[threadIdx.y][threadIdx.x] = j < k && column < m ? b[j * m + column] : 0;
    __syncthreads();
    for (int t = 0; t < TILE; ++t) sum += left[threadIdx.y][t] * right[t][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < m) c[row * m + column] = sum;"""
    for (name, body), tile in itertools.product({"plain": plain, "tiled": tiled}.items(), (8, 16)):
        text = (
            f"#define TILE {tile}\n__global__ void gemm({signature}) {{\n"
            "  int row = blockIdx.y * TILE + threadIdx.y;\n"
            f"  int column = blockIdx.x * TILE + threadIdx.x;\n{body}\n}}"
        )
        yield (
            f"gemm_{name}_{tile}",
            text,
            task(
                "gemm",
                signature,
                product_inputs,
                lambda a, b, c, n, m, k: (
                    *(None, None, a.astype(np.float64) @ b.astype(np.float64)),
                    *(None, None, None),
                ),
                grid=lambda a, b, c, n, m, k, tile=tile: (-(-m // tile), -(-n // tile)),
                block=(tile, tile),
                cases=5,
                rtol=1e-4,
                atol=1e-4,
            ),
        )


ROWS = {
    "softmax": (
        """  float most = -3e38f, sum = 0;
  for (int i = lane; i < m; i += 32) most = fmaxf(most, x[i]);
  for (int k = 16; k > 0; k /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
  for (int i = lane; i < m; i += 32) sum += expf(x[i] - most);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  for (int i = lane; i < m; i += 32) y[i] = expf(x[i] - most) / sum;""",
        lambda x: (
            np.exp(x - x.max(1, keepdims=True))
            / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
        ),
    ),
    "layer_norm": (
        """  float sum = 0, squares = 0;
  for (int i = lane; i < m; i += 32) sum += x[i];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  float mean = sum / m;
  for (int i = lane; i < m; i += 32) squares += (x[i] - mean) * (x[i] - mean);
  for (int k = 16; k > 0; k /= 2) squares += __shfl_xor_sync(~0u, squares, k);
  for (int i = lane; i < m; i += 32) y[i] = (x[i] - mean) * rsqrtf(squares / m + 1e-5f);""",
        lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
    ),
    "rms_norm": (
        """  float squares = 0;
  for (int i = lane; i < m; i += 32) squares += x[i] * x[i];
  for (int k = 16; k > 0; k /= 2) squares += __shfl_xor_sync(~0u, squares, k);
  for (int i = lane; i < m; i += 32) y[i] = x[i] * rsqrtf(squares / m + 1e-5f);""",
        lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
    ),
    "cumulative_sum": (
        """  float before = 0;
  for (int at = 0; at < m; at += 32) {
    float v = at + lane < m ? x[at + lane] : 0;
    for (int k = 1; k < 32; k *= 2) {
      float left = __shfl_up_sync(~0u, v, k);
      if (lane >= k) v += left;
    }
    if (at + lane < m) y[at + lane] = before + v;
    before += __shfl_sync(~0u, v, 31);
  }""",
        lambda x: np.cumsum(x, 1),
    ),
}


def rows():
    for (name, (body, f)), warps in itertools.product(ROWS.items(), (1, 2, 4)):
        text = f"""__global__ void row(const float* x, float* y, int n, int m) {{
  int lane = threadIdx.x % 32, at = blockIdx.x * {warps} + threadIdx.x / 32;
  if (at >= n) return;
  x += (size_t)at * m;
  y += (size_t)at * m;
{body}
}}"""

        def inputs(seed, case):
            n, m = ((12, 300), (1, 1), (3, 31), (3, 32), (2, 33), (5, 64), (7, 100), (1, 257))[case]
            x = np.random.default_rng([seed, case]).standard_normal((n, m)).astype(np.float32)
            return x, np.zeros_like(x), n, m

        yield (
            f"{name}_{warps}",
            text,
            task(
                "row",
                "const float* x, float* y, int n, int m",
                inputs,
                lambda x, y, n, m, f=f: (None, f(x.astype(np.float64)), None, None),
                grid=lambda x, y, n, m, warps=warps: -(-n // warps),
                block=32 * warps,
                rtol=1e-4,
                atol=2e-5,
            ),
        )


def stencils():
    near = "(x[max(i - 1, 0)] + 2 * x[i] + x[min(i + 1, n - 1)]) / 4"
    shared = """  __shared__ float part[BLOCK + 2];
  int at = min(i, n - 1);
  part[threadIdx.x + 1] = x[at];
  if (threadIdx.x == 0) part[0] = x[max(at - 1, 0)];
  if (threadIdx.x == BLOCK - 1) part[BLOCK + 1] = x[min(at + 1, n - 1)];
  __syncthreads();
  if (i >= n) return;
  float right = i == n - 1 ? x[i] : part[threadIdx.x + 2];
  y[i] = (part[threadIdx.x] + 2 * part[threadIdx.x + 1] + right) / 4;"""
    bodies = {"plain": f"  if (i < n) y[i] = {near};", "shared": shared}
    for (name, body), block in itertools.product(bodies.items(), (32, 64, 256)):
        text = (
            f"#define BLOCK {block}\n__global__ void blur(const float* x, float* y, int n) {{\n"
            f"  {INDEX}\n{body}\n}}"
        )

        def reference(x, y, n):
            wide = np.pad(x.astype(np.float64), 1, "edge")
            return None, (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4, None

        yield (
            f"stencil_{name}_{block}",
            text,
            task(
                "blur",
                "const float* x, float* y, int n",
                kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=1500, values=("uniform",)),
                reference,
                grid=lambda x, y, n, block=block: -(-n // block),
                block=block,
            ),
        )


def scattered():
    """Indices: gather, scatter, and a permutation in its place."""

    def inputs(seed, case):
        rng = np.random.default_rng([seed, case])
        n = (700, 1, 2, 33, 64, 127, 256, 500)[case]
        return rng.random(n, np.float32), rng.permutation(n).astype(np.int32), np.zeros(n, "f4"), n

    def scatter(x, at, y, n):
        out = np.zeros(n, np.float32)
        out[at] = x
        return None, None, out, None

    signature = "const float* x, const int* at, float* y, int n"
    for name, code, reference in (
        ("gather", "y[i] = x[at[i]];", lambda x, at, y, n: (None, None, x[at], None)),
        ("scatter", "y[at[i]] = x[i];", scatter),
    ):
        text = f"__global__ void move({signature}) {{\n  {INDEX}\n  if (i < n) {code}\n}}"
        yield name, text, task("move", signature, inputs, reference)


FAMILIES = (
    *(elementwise, vectors, in_place, folds, histograms, transposes, products, rows),
    *(stencils, scattered),
)


def kernels():
    for family in FAMILIES:
        yield from family()
