"""Honest kernels drawn at random: any number of them, of the kinds that people and programs write.

`drawn(seed, count)` gives (name, text, task). The suite judges a few of them;
`bench/judge.py` many.
"""

import random

import numpy as np
from judge_drawn_blocks import grouped, product, rows, scan, size_inputs, sizes, stencil, transpose

import kernwright as kw

NAMES = ("x", "T", "I", "M", "E", "src", "A", "in_", "data", "cuda_src", "D")
OUTS = ("y", "Y", "out", "dst", "B", "result", "TIME", "DATE")
FLOATS = ("float", "double", "__half", "__nv_bfloat16")
DTYPES = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32",
    "long long": "int64", "unsigned char": "uint8", "short": "int16", "bool": "bool",
    "__half": "float16", "__nv_bfloat16": "bfloat16",
}  # fmt: skip
TOLERANCES = {"float": 1e-5, "double": 1e-12, "__half": 4e-3, "__nv_bfloat16": 3e-2}
HEADERS = {"__half": "#include <cuda_fp16.h>\n", "__nv_bfloat16": "#include <cuda_bf16.h>\n"}
FUNCTIONS = (
    ("v * C + D", lambda v, c, d: v * c + d),
    ("v > Z ? v : Z", lambda v, c, d: np.maximum(v, 0)),
    ("v > Z ? v : v * C", lambda v, c, d: np.where(v > 0, v, v * c)),
    ("v * v - D", lambda v, c, d: v * v - d),
    ("D - v", lambda v, c, d: d - v),
    ("v < D ? D : v", lambda v, c, d: np.maximum(v, d)),
)


def _helper(rng, kind, code):
    """The function of an element, in some way of writing it."""
    style = rng.randrange(6)
    name = rng.choice(("f", "apply", "cuda_apply", "op", "act", "__my_op", "E"))
    consts = (
        f"T Z = T(0.0f), C = T(2.0f), D = T(1.0f);\n  (void)Z; (void)C; (void)D;\n  return {code};"
    )
    if style == 0:
        return f"__device__ T {name}(T v) {{ {consts} }}\n", f"{name}(%s)"
    if style == 1:
        return (
            (
                f"template <class U> __device__ __forceinline__ U {name}(U v) "
                f"{{ using T = U; {consts} }}\n"
            ),
            f"{name}<T>(%s)",
        )
    if style == 2:
        return f"struct Op_ {{ __device__ T operator()(T v) const {{ {consts} }} }};\n", "Op_{}(%s)"
    if style == 3:
        return f"__device__ __noinline__ T {name}(T v) {{ {consts} }}\n", f"{name}(%s)"
    if style == 4:
        return (
            (
                f'extern "C" __device__ T cuda_{kind.strip("_").replace(" ", "_")}(T v) '
                f"{{ {consts} }}\n"
            ),
            f"cuda_{kind.strip('_').replace(' ', '_')}(%s)",
        )
    return (
        "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n"
        f"__device__ T CAT(fun, 1)(T v) {{ {consts} }}\n",
        "CAT(fun, 1)(%s)",
    )


def elementwise(rng):
    kind = rng.choice((*FLOATS, "int", "unsigned", "short", "float", "float"))
    if kind in ("unsigned", "short"):
        code, f = FUNCTIONS[1]
    else:
        code, f = rng.choice(FUNCTIONS)
    helper, call = _helper(rng, kind, code)
    x, y = rng.choice(NAMES[:1] + NAMES[5:]), rng.choice(OUTS)
    if x == y:
        y += "_"
    one = f"{y}[i] = {call % f'{x}[i]'};"
    index = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    block = rng.choice((32, 64, 96, 128, 256, 512))
    grid, shared = (lambda *a, b=block: -(-a[-1] // b)), 0
    style = rng.randrange(7)
    if style == 0:
        body = f"{index} if (i < n) {one}"
    elif style == 1:
        body = f"{index} if (i >= n) return; {one}"
    elif style == 2:
        body = (
            f"for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += "
            f"gridDim.x * blockDim.x) {one}"
        )
        grid = rng.choice((1, 2, 3))
    elif style == 3:
        k = rng.choice((2, 4, 8))
        body = (
            f"#pragma unroll\n for (int k = 0; k < {k}; ++k) "
            f"{{ int i = (blockIdx.x * {k} + k) * blockDim.x + threadIdx.x; if (i < n) {one} }}"
        )
        grid = lambda *a, b=block, k=k: -(-a[-1] // (b * k))  # noqa: E731
    elif style == 4:
        body = (
            f"{index} extern __shared__ unsigned char raw[]; T* part = (T*)raw; if "
            f"(i < n) part[threadIdx.x] = {x}[i]; __syncthreads(); if (i < n) {y}[i] "
            f"= {call % 'part[threadIdx.x]'};"
        )
        shared = block * 8
    elif style == 5:
        body = f"{index} if (i < n) {{ T v = __ldg({x} + i); {y}[i] = {call % 'v'}; }}"
    else:
        body = (
            f"const long long total = n; long long i = (long long)blockIdx.x * "
            f"blockDim.x + threadIdx.x; while (i < total) "
            f"{{ {one} i += (long long)gridDim.x * blockDim.x; }}"
        )
        grid = 2
    bounds = f"__launch_bounds__({block}) " if rng.random() < 0.3 else ""
    restrict = rng.choice(("", "__restrict__ "))
    text = (
        f"{HEADERS.get(kind, '')}using T = {kind};\n{helper}"
        f"__global__ void {bounds}run(const T* {restrict}{x}, T* {restrict}{y}, "
        f"int n) {{\n  {body}\n}}"
    )

    def reference(x, y, n):
        wide = x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)
        return None, f(wide, 2, 1), None

    tolerance = TOLERANCES.get(kind)
    task = kw.Task(
        entry="run", signature=f"const {kind}* x, {kind}* y, int n", reference=reference,
        inputs=size_inputs([DTYPES[kind]] * 2, sizes(rng)), grid=grid, block=block,
        shared_bytes=shared, rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    return f"elementwise_{kind.replace(' ', '_')}_{style}", text, task


def binary(rng):
    """Two inputs, one or two outputs, scalars and structs as parameters."""
    style = rng.randrange(4)
    if style == 0:
        text = """struct Scale { float a, b; };
__global__ void run(Scale s, const float* x, const float* z, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = s.a * x[i] + s.b * z[i];
}"""
        pair = np.dtype([("a", "f4"), ("b", "f4")])
        scale = np.array([(0.5, -1.5)], pair)[0]
        plain = size_inputs(["float32"] * 3, sizes(rng))

        def inputs(seed, case):
            return (scale, *plain(seed, case))

        task = kw.Task(
            entry="run", inputs=inputs, rtol=1e-5, atol=1e-5,
            reference=lambda s, x, z, y, n: (
                *(None, None, None), 0.5 * x.astype("f8") - 1.5 * z, None),
        )  # fmt: skip
    elif style == 1:
        text = """__global__ void run(const float* x, const float* z, float* y, bool* less, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = fminf(x[i], z[i]); less[i] = x[i] < z[i]; }
}"""
        task = kw.Task(
            entry="run", signature="const float* x, const float* z, float* y, bool* less, int n",
            inputs=size_inputs(["float32"] * 3 + ["bool"], sizes(rng)),
            reference=lambda x, z, y, less, n: (None, None, np.minimum(x, z), x < z, None),
        )  # fmt: skip
    elif style == 2:
        text = """__global__ void run(const float4* x, const float4* z, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 a = x[i], b = z[i];
  y[i] = make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}"""

        def fours(seed, case):
            r = np.random.default_rng([seed, case])
            n = (300, 1, 7, 32, 33, 64, 100, 129)[case]
            return *(r.standard_normal(4 * n).astype("f4") for _ in range(3)), n

        task = kw.Task(
            entry="run", signature="const float4* x, const float4* z, float4* y, int n",
            inputs=fours, reference=lambda x, z, y, n: (None, None, x.astype("f8") * z, None),
            grid=lambda x, z, y, n: -(-n // 256), rtol=1e-5, atol=1e-5,
        )  # fmt: skip
    else:
        text = """#include <cuda_fp16.h>
__global__ void run(const __half2* x, const __half2* z, __half2* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hadd2(x[i], z[i]);
}"""

        def pairs(seed, case):
            r = np.random.default_rng([seed, case])
            n = (300, 1, 7, 32, 33, 64, 100, 129)[case]
            return *(r.standard_normal(2 * n).astype("f2") for _ in range(3)), n

        task = kw.Task(
            entry="run", signature="const __half2* x, const __half2* z, __half2* y, int n",
            inputs=pairs, reference=lambda x, z, y, n: (None, None, x.astype("f8") + z, None),
            grid=lambda x, z, y, n: -(-n // 256), rtol=4e-3, atol=4e-3,
        )  # fmt: skip
    return f"binary_{style}", text, task


def reduction(rng):
    kind = rng.choice(("int", "float", "double", "unsigned"))
    block = rng.choice((32, 64, 128, 256))
    way = rng.randrange(6)
    op, numpy_op = rng.choice((("add", np.sum), ("max", np.max)))
    start = "0" if op == "add" else {"int": "-2147483647", "unsigned": "0"}.get(kind, "-1e30f")
    if op == "max" and kind in ("float", "double"):
        op, numpy_op, start = "add", np.sum, "0"
    join = "a + b" if op == "add" else "a > b ? a : b"
    atomic = "atomicAdd" if op == "add" else "atomicMax"
    head = f"using T = {kind};\n__device__ T op(T a, T b) {{ return {join}; }}\n"
    own = (
        f"T v = {start}; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < "
        f"n; i += gridDim.x * blockDim.x) v = op(v, x[i]);"
    )
    warp = "for (int d = 16; d > 0; d >>= 1) v = op(v, __shfl_%s_sync(0xffffffffu, v, d));"
    grid = rng.choice((1, 2, 5))
    if way == 0:
        body = f"{own} {warp % 'down'} if (threadIdx.x % 32 == 0) {atomic}(out, v);"
    elif way == 1:
        body = (
            f"{own} {warp % 'xor'} __shared__ T part[32]; if (threadIdx.x % 32 == 0) "
            f"part[threadIdx.x / 32] = v; __syncthreads(); if (threadIdx.x == 0) "
            f"{{ for (int k = 1; k < blockDim.x / 32; ++k) v = op(v, part[k]); {atomic}(out, v); }}"
        )
    elif way == 2:
        body = (
            f"__shared__ T part[{block}]; {own} part[threadIdx.x] = v; "
            f"__syncthreads(); for (int s = blockDim.x / 2; s > 0; s >>= 1) "
            f"{{ if (threadIdx.x < s) part[threadIdx.x] = "
            f"op(part[threadIdx.x], part[threadIdx.x + s]); __syncthreads(); }} "
            f"if (threadIdx.x == 0) {atomic}(out, part[0]);"
        )
    elif way == 3:
        head += (
            "#include <cooperative_groups.h>\n#include "
            "<cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;\n"
        )
        functor = "cg::plus<T>()" if op == "add" else "cg::greater<T>()"
        body = (
            f"{own} auto tile = cg::tiled_partition<32>(cg::this_thread_block()); v "
            f"= cg::reduce(tile, v, {functor}); if (tile.thread_rank() == 0) "
            f"{atomic}(out, v);"
        )
    elif way == 4:
        head += "__device__ unsigned arrived;\n__device__ T parts[8];\n"
        body = (
            f"__shared__ bool last; {own} {warp % 'down'} __shared__ T part[32]; if "
            f"(threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v; __syncthreads(); "
            f"if (threadIdx.x == 0) "
            f"{{ for (int k = 1; k < blockDim.x / 32; ++k) v = op(v, part[k]); "
            f"parts[blockIdx.x] = v; __threadfence(); "
            f"last = atomicAdd(&arrived, 1) == gridDim.x - 1; }} "
            f"__syncthreads(); if (last && threadIdx.x == 0) "
            f"{{ __threadfence(); T all = {start}; for (int k = 0; k < gridDim.x; ++k) "
            f"all = op(all, *(volatile T*)&parts[k]); *out = all; atomicExch(&arrived, 0u); }}"
        )
    else:
        body = (
            f"if (blockIdx.x == 0 && threadIdx.x == 0) "
            f"{{ T v = {start}; for (int i = 0; i < n; ++i) v = op(v, x[i]); *out = v; }}"
        )
    text = f"{head}__global__ void run(const T* x, T* out, int n) {{\n  {body}\n}}"
    initial = {"add": 0}.get(op, 0 if kind == "unsigned" else -(2**31) + 1)
    lengths = sizes(rng)

    def inputs(seed, case):
        r = np.random.default_rng([seed, case])
        n = lengths[case]
        x = r.integers(0 if kind == "unsigned" else -50, 50, n).astype(DTYPES[kind])
        return x, np.array([initial], DTYPES[kind]), n

    def reference(x, out, n):
        wide = x.astype("i8" if kind in ("int", "unsigned") else "f8")
        return None, np.array([numpy_op(wide)]), None

    task = kw.Task(
        entry="run", signature=f"const {kind}* x, {kind}* out, int n", inputs=inputs,
        reference=reference, grid=grid, block=block,
        rtol=1e-5 if kind in ("float", "double") else None,
        atol=1e-3 if kind in ("float", "double") else None,
    )  # fmt: skip
    return f"reduction_{op}_{kind}_{way}", text, task


def async_copy(rng):
    way = rng.randrange(3)
    if way == 0:
        text = """#include <cuda_pipeline.h>
__global__ void run(const float* x, float* y, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) __pipeline_memcpy_async(part + threadIdx.x, x + i, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (i < n) y[i] = 2 * part[threadIdx.x] + 1;
}"""
    elif way == 1:
        text = """__global__ void run(const float* x, float* y, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(part + threadIdx.x);
  if (i < n) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i));
  asm volatile("cp.async.commit_group;\\n cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  if (i < n) y[i] = 2 * part[threadIdx.x] + 1;
}"""
    else:
        text = """#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void run(const float* x, float* y, int n) {
  __shared__ float part[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cuda::memcpy_async(part + threadIdx.x, x + i, cuda::aligned_size_t<4>(4), bar);
  bar.arrive_and_wait();
  if (i < n) y[i] = 2 * part[threadIdx.x] + 1;
}"""
    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n", rtol=1e-5, atol=1e-5,
        inputs=size_inputs(["float32"] * 2, sizes(rng)),
        reference=lambda x, y, n: (None, 2 * x.astype("f8") + 1, None),
    )  # fmt: skip
    return f"async_copy_{way}", text, task


def tallied(rng):
    """Histograms, scatter, gather, compaction, a workspace."""
    way = rng.randrange(5)
    lengths = sizes(rng)
    if way in (0, 1):
        body = "if (i < n) atomicAdd(&bins[x[i]], 1u);"
        if way == 1:
            body = (
                "__shared__ unsigned own[64]; for (int k = threadIdx.x; k < 64; k += "
                "blockDim.x) own[k] = 0; __syncthreads(); if (i < n) "
                "atomicAdd(&own[x[i]], 1u); __syncthreads(); for (int k = threadIdx.x; k "
                "< 64; k += blockDim.x) if (own[k] != 0) atomicAdd(&bins[k], own[k]);"
            )
        text = (
            f"__global__ void run(const unsigned char* x, unsigned* bins, int n) "
            f"{{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}"
        )

        def inputs(seed, case):
            r = np.random.default_rng([seed, case])
            return r.integers(0, 64, lengths[case]).astype("u1"), np.zeros(64, "u4"), lengths[case]

        task = kw.Task(
            entry="run", signature="const unsigned char* x, unsigned* bins, int n", inputs=inputs,
            reference=lambda x, bins, n: (None, np.bincount(x, minlength=64), None),
            grid=lambda x, bins, n: -(-n // 128), block=128,
        )  # fmt: skip
    elif way in (2, 3):
        line = "y[at[i]] = x[i];" if way == 2 else "y[i] = x[at[i]];"
        text = (
            f"__global__ void run(const float* x, const int* at, float* y, int n) "
            f"{{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {line}\n}}"
        )

        def inputs(seed, case):
            r = np.random.default_rng([seed, case])
            n = lengths[case]
            return r.random(n).astype("f4"), r.permutation(n).astype("i4"), np.zeros(n, "f4"), n

        def reference(x, at, y, n, way=way):
            out = x[at].copy()
            if way == 2:
                out = np.empty_like(x)
                out[at] = x
            return None, None, out, None

        task = kw.Task(
            entry="run", signature="const float* x, const int* at, float* y, int n",
            inputs=inputs, reference=reference,
        )  # fmt: skip
    else:
        text = """__global__ void run(const float* x, float* y, float* scratch, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) scratch[i] = 2 * x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = scratch[n - 1 - i] + 1;
}"""
        task = kw.Task(
            entry="run", signature="const float* x, float* y, float* scratch, int n",
            inputs=size_inputs(["float32"] * 3, lengths), grid=1, workspace="scratch",
            reference=lambda x, y, s, n: (None, 2 * x[::-1].astype("f8") + 1, None, None),
        )  # fmt: skip
    return f"tallied_{way}", text, task


def in_place(rng):
    kind = rng.choice(("float", "double"))
    body, f = rng.choice(
        (
            ("y[i] += a * x[i];", lambda a, x, y: y + a * x),
            ("y[i] = a * y[i] + x[i];", lambda a, x, y: a * y + x),
            ("atomicAdd(y + i, a * x[i]);", lambda a, x, y: y + a * x),
            ("T old = y[i]; y[i] = old > x[i] ? old : x[i];", lambda a, x, y: np.maximum(x, y)),
        )
    )
    text = (
        f"using T = {kind};\n__global__ void run(T a, const T* x, T* y, int n) "
        f"{{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {{ {body} }}\n}}"
    )
    plain = size_inputs([DTYPES[kind]] * 2, sizes(rng))

    def inputs(seed, case):
        return (np.dtype(DTYPES[kind]).type(0.75), *plain(seed, case))

    task = kw.Task(
        entry="run", signature=f"{kind} a, const {kind}* x, {kind}* y, int n", inputs=inputs,
        rtol=1e-5, atol=1e-5,
        reference=lambda a, x, y, n: (None, None, f(0.75, x.astype("f8"), y.astype("f8")), None),
    )  # fmt: skip
    return f"in_place_{kind}", text, task


def tensors(rng):
    """Views of tensors with names of one letter and an underscore, as CuTe writes them."""
    rank = rng.choice((1, 2))
    text = """struct All {}; constexpr All _{};
#define RUN(T, I) \\
  template <class T, int I> struct View { \\
    T* p; \\
    __device__ T& operator()(int k, All) const { return p[k * I]; } \\
  };
RUN(T, I)
template <int M, int E, class D, class A> __device__ void each(D const& Y, A const& X, int n) {
  #pragma unroll
  for (int e = 0; e < E; ++e) { int i = (blockIdx.x * E + e) * M + threadIdx.x; if (i <
    n) Y(i, _) = 2 * X(i, _) + 1; }
}
__global__ void run(const float* x, float* y, int n) {
  View<const float, 1> X{x}; View<float, 1> Y{y};
  each<128, EACH>(Y, X, n);
}""".replace("EACH", str(rank))
    task = kw.Task(
        entry="run", signature="const float* x, float* y, int n", rtol=1e-5, atol=1e-5, block=128,
        inputs=size_inputs(["float32"] * 2, sizes(rng)),
        reference=lambda x, y, n: (None, 2 * x.astype("f8") + 1, None),
        grid=lambda x, y, n: -(-n // (128 * rank)),
    )  # fmt: skip
    return f"tensors_{rank}", text, task


FAMILIES = (
    *(elementwise, elementwise, elementwise, binary, reduction, reduction, rows, rows, scan),
    *(transpose, product, async_copy, grouped, tallied, in_place, stencil, tensors),
)


def drawn(seed, count):
    """The first `count` kernels of a seed; families take turns."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name, text, task = FAMILIES[number % len(FAMILIES)](rng)
        yield f"{number}_{name}", text, task
