// Tiles of 16-bit floats in shared memory, their copies from global memory, and the warp's matrix
// instructions of sm_80 and newer.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/shared_address.cuh>

namespace kernwright {

/// 16 bytes to shared memory, without waiting; zeros instead where `valid` is false.
__device__ __forceinline__ void copy_async(unsigned to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `kPending` of the thread's groups are under way.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// The swizzle: the position of a chunk of 16 bytes among the `kChunks` of its row, without bank
/// conflicts for eight rows of one chunk. kChunks: a multiple of 4.
template <int kChunks>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  if constexpr (kChunks % 8 == 0) return row * kChunks + (chunk ^ (row & 7));
  return row * kChunks + (chunk ^ (row >> 1 & 3));
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void load_transposed(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}

/// Rows first_row..+15, columns 16 * step..+15 of a row-major tile as the left operand.
template <int kColumns>
__device__ __forceinline__ void load_left(unsigned (&to)[4], unsigned tile, int first_row,
                                          int step) {
  const int lane = threadIdx.x % 32;
  const int place = swizzled<kColumns / 8>(first_row + lane % 16, 2 * step + lane / 16);
  load_matrices(to, tile + 16 * place);
}
/// The fragment of a tile whose columns are the products' rows.
template <int kColumns>
__device__ __forceinline__ void load_left_transposed(unsigned (&to)[4], unsigned tile, int step,
                                                     int first_column) {
  const int lane = threadIdx.x % 32;
  const int row = 16 * step + lane / 16 * 8 + lane % 8;
  const int place = swizzled<kColumns / 8>(row, first_column / 8 + lane / 8 % 2);
  load_transposed(to, tile + 16 * place);
}
/// Two right operands, eight columns of the product each, from a tile that holds the columns as
/// rows first_row..+15: {to[0], to[1]} and {to[2], to[3]}.
template <int kColumns>
__device__ __forceinline__ void load_right(unsigned (&to)[4], unsigned tile, int first_row,
                                           int step) {
  const int lane = threadIdx.x % 32;
  const int row = first_row + lane / 16 * 8 + lane % 8;
  load_matrices(to, tile + 16 * swizzled<kColumns / 8>(row, 2 * step + lane / 8 % 2));
}
/// Two right operands from a tile whose rows 16 * step..+15 are summed over, of the 16 columns from
/// first_column.
template <int kColumns>
__device__ __forceinline__ void load_right_transposed(unsigned (&to)[4], unsigned tile, int step,
                                                      int first_column) {
  const int lane = threadIdx.x % 32;
  const int place = swizzled<kColumns / 8>(16 * step + lane % 16, first_column / 8 + lane / 16);
  load_transposed(to, tile + 16 * place);
}

template <typename T>
struct MatrixUnit;
template <>
struct MatrixUnit<Float16> {
  /// sum += left * right; lane l holds columns 2 * (l % 4), +1 of rows l / 4 (two) and l / 4 + 8.
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
  __device__ static __forceinline__ unsigned pair(float low, float high) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
  }
};
template <>
struct MatrixUnit<BFloat16> {
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
  __device__ static __forceinline__ unsigned pair(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
  }
};

}  // namespace kernwright
