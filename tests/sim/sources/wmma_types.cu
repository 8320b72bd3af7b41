// wmma fragments of bf16, tf32, int8 and double.
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_types(const __nv_bfloat16* a, const float* t, const signed char* s, const double* d,
                                      float* c, int* i, double* e) {
  __shared__ signed char tile[256];
  for (int k = threadIdx.x; k < 256; k += 32) tile[k] = s[k];
  __syncwarp();
  {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, a, 8);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
  }
  {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
    wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
    wmma::load_matrix_sync(fa, t, 8);
    wmma::load_matrix_sync(fb, t, 8);
    for (int k = 0; k < fa.num_elements; ++k) fa.x[k] = wmma::__float_to_tf32(fa.x[k]);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
  }
  {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 0);
    wmma::load_matrix_sync(fa, tile, 16);
    wmma::load_matrix_sync(fb, s, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(i, fc, 16, wmma::mem_row_major);
  }
  {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
    wmma::fill_fragment(fc, 0.0);
    wmma::load_matrix_sync(fa, d, 4);
    wmma::load_matrix_sync(fb, d, 4);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(e, fc, 8, wmma::mem_row_major);
  }
}
