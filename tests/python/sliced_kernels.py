"""Kernels in the styles of many authors, each with what makes its grid hard to redirect.

A case: the text, the kernel's name, the grid, the block, bytes of dynamic shared memory. Every
kernel takes `int* out` and the count of its elements, and writes what its block has read of the
grid; some add with atomics.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    text: str
    kernel: str
    grid: tuple[int, ...]
    block: int = 8
    shared: int = 0
    options: dict = dataclasses.field(default_factory=dict)


FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"
MARK = "out[i] = blockIdx.x * 1000 + gridDim.x;"

CASES = [
    Case("one_dimension", f"__global__ void k(int* out, int n) {{ {FLAT} {MARK} }}", "k", (7,)),
    Case(
        "two_dimensions",
        """__global__ void k(int* out, int n) {
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int i = block * blockDim.x + threadIdx.x;
    if (i < n) out[i] = blockIdx.x + 100 * blockIdx.y + 10000 * gridDim.y;
}""",
        "k",
        (3, 5),
    ),
    Case(
        "three_dimensions",
        """__global__ void k(int* out, int n) {
    dim3 g = gridDim;
    int block = (blockIdx.z * g.y + blockIdx.y) * g.x + blockIdx.x;
    int i = block * blockDim.x + threadIdx.x;
    if (i < n) out[i] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * gridDim.z;
}""",
        "k",
        (2, 3, 4),
    ),
    Case(
        "tall_grid",
        """__global__ void k(int* out, int n) {
    int i = blockIdx.z * blockDim.x + threadIdx.x;
    if (i < n) out[i] = blockIdx.z + gridDim.z * 100;
}""",
        "k",
        (1, 1, 9),
    ),
    Case(
        "template_of_types",
        f"""template <typename T, int Add>
__global__ void k(T* __restrict__ out, T n) {{ {FLAT} out[i] = blockIdx.x + Add * gridDim.x; }}""",
        "k<int, 3>",
        (6,),
    ),
    Case(
        "parameter_pack",
        f"""template <typename... Numbers>
__global__ void k(int* out, Numbers... rest) {{ int n = (rest + ...); {FLAT} {MARK} }}""",
        "k<int>",
        (5,),
    ),
    Case(
        "default_argument",
        f"__global__ void k(int* out, int n = 4) {{ {FLAT} {MARK} }}",
        "k",
        (5,),
    ),
    Case(
        "extern_c_block",
        f"""extern "C" {{
__global__ void __launch_bounds__(64, 2) k(int *out, const int n)
{{
    {FLAT}
    {MARK}
}}
}}""",
        "k",
        (5,),
    ),
    Case(
        "made_by_a_macro",
        r"""#define KERNEL_FOR(T)                             \
  __global__ void k_##T(T* out, int n) {          \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < n) out[i] = blockIdx.x + gridDim.x;   \
  }
KERNEL_FOR(int)
""",
        "k_int",
        (5,),
    ),
    Case(
        "marked_by_a_macro",
        f"""#define KERNEL extern "C" __global__ void
KERNEL k(int* out, int n) {{ {FLAT} {MARK} }}""",
        "k",
        (5,),
    ),
    Case(
        "read_through_macros",
        """#define BID blockIdx.x
#define GLOBAL_ID (BID * blockDim.x + threadIdx.x)
#define DIM(which) which##Dim.x
__global__ void k(int* out, int n) { if (GLOBAL_ID < n) out[GLOBAL_ID] = BID + DIM(grid) * 100; }
""",
        "k",
        (6,),
    ),
    Case(
        "device_functions",
        """__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __noinline__ int blocks() { return gridDim.x * 1000 + blockIdx.x; }
__global__ void k(int* out, int n) { if (place() < n) out[place()] = blocks(); }""",
        "k",
        (6,),
    ),
    Case(
        "recursion",
        """__device__ __noinline__ int down(int n) {
    return n <= 0 ? (int)blockIdx.x : 1 + down(n - 2);
}
__global__ void k(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = down(i % 7);
}""",
        "k",
        (4,),
    ),
    Case(
        "function_pointer",
        """typedef int (*Reader)(int);
__device__ __noinline__ int first(int a) { return a + blockIdx.x; }
__device__ __noinline__ int second(int a) { return a * gridDim.x; }
__global__ void k(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Reader readers[2] = {first, second};
    if (i < n) out[i] = readers[out[i] & 1](i);
}""",
        "k",
        (4,),
    ),
    Case(
        "lambda_by_reference",
        f"""__global__ void k(int* out, int n) {{
    {FLAT}
    auto value = [&] {{ return blockIdx.x * 10 + gridDim.x; }};
    out[i] = value();
}}""",
        "k",
        (5,),
    ),
    Case(
        "lambda_without_captures",
        f"""__global__ void k(int* out, int n) {{
    {FLAT}
    auto value = [](int a) {{ return a + blockIdx.x * 10 + gridDim.x; }};
    out[i] = value(i);
}}""",
        "k",
        (5,),
    ),
    Case(
        "local_class",
        f"""__global__ void k(int* out, int n) {{
    struct Tile {{
        __device__ int first() const {{ return blockIdx.x * 7; }}
    }};
    {FLAT}
    out[i] = Tile().first();
}}""",
        "k",
        (5,),
    ),
    Case(
        "names_of_its_own",
        f"""struct Tile {{ uint3 blockIdx; dim3 gridDim; }};
__device__ int first(uint3 blockIdx) {{ return blockIdx.x; }}
__global__ void k(int* out, int n) {{
    {FLAT}
    Tile tile{{blockIdx, gridDim}};
    out[i] = first(tile.blockIdx) + tile.gridDim.x * 100;
}}""",
        "k",
        (5,),
    ),
    Case(
        "deduced_types",
        f"""template <class T> __device__ T larger(T a, T b) {{ return a > b ? a : b; }}
__global__ void k(int* out, int n) {{
    {FLAT}
    const auto b = blockIdx;
    out[i] = min(gridDim.x, 3u) + larger(b.x, 2u);
}}""",
        "k",
        (5,),
    ),
    Case(
        "namespaces",
        f"""namespace a {{ namespace {{
template <int N> __device__ int scaled() {{ return N * blockIdx.x; }}
}}
inline namespace v1 {{
__global__ void k(int* out, int n) {{ {FLAT} out[i] = scaled<3>(); }}
}} }}""",
        "a::k",
        (5,),
    ),
    Case(
        "declared_first",
        f"""__global__ void k(int* out, int n);
__global__ void k(int* out, int n) {{ {FLAT} {MARK} }}""",
        "k",
        (5,),
    ),
    Case(
        "dynamic_shared",
        """__global__ void k(int* out, int n) {
    extern __shared__ int tile[];
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    tile[threadIdx.x] = threadIdx.x * gridDim.x;
    __syncthreads();
    atomicAdd(&total, tile[blockDim.x - 1 - threadIdx.x]);
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = total + blockIdx.x;
}""",
        "k",
        (5,),
        shared=32,
    ),
    Case(
        "atomics_between_blocks",
        """__global__ void k(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out, 1);
    atomicMax(out + 1, (int)blockIdx.x);
    atomicXor(out + 2, i);
}""",
        "k",
        (9,),
    ),
    Case(
        "last_block",
        """__global__ void k(int* out, int n) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = blockIdx.x * 3;
        __threadfence();
        is_last = atomicAdd(out, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += atomicAdd(out + 1 + b, 0);
        out[n - 1] = sum;
    }
}""",
        "k",
        (9,),
    ),
    Case(
        "grid_stride",
        """__global__ void k(int* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] += i + (int)gridDim.x;
}""",
        "k",
        (3,),
    ),
    Case(
        "constants",
        f"""__constant__ int table[4] = {{5, 6, 7, 8}};
static __device__ const int steps[2] = {{10, 20}};
__global__ void k(int* out, int n) {{ {FLAT} out[i] = table[blockIdx.x % 4] + steps[i % 2]; }}""",
        "k",
        (6,),
    ),
    Case(
        "standard_headers",
        f"""#include <cstdint>
#include <type_traits>
#include <cuda_fp16.h>
__global__ void k(std::int32_t* out, int n) {{
    {FLAT}
    static_assert(std::is_same<decltype(blockIdx.x + 0u), unsigned>::value, "");
    out[i] = (int)__half2float(__float2half((float)blockIdx.x)) + gridDim.x;
}}""",
        "k",
        (5,),
    ),
    Case(
        "cooperative_ranks",
        """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out, int n) {
    auto grid = cg::this_grid();
    auto warp = cg::tiled_partition<8>(cg::this_thread_block());
    int i = grid.thread_rank();
    if (i < n) out[i] = grid.size() + warp.thread_rank() + cg::this_thread_block().group_index().x;
}""",
        "k",
        (5,),
    ),
    Case(
        "header_given_as_text",
        '#include "parts.cuh"\n',
        "k",
        (5,),
        options={
            "headers": {"parts.cuh": f"__global__ void k(int* out, int n) {{ {FLAT} {MARK} }}"}
        },
    ),
    Case(
        "two_kernels",
        f"""__global__ void other(float* x) {{ x[blockIdx.x] = 1; }}
__global__ void k(int* out, int n) {{ {FLAT} {MARK} }}""",
        "k",
        (5,),
    ),
]
