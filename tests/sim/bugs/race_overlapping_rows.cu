// Each thread writes five floats of a row of four: the last belongs to the neighbour.
// launch: grid=1 block=32 args=f32*128:zeros
extern "C" __global__ void bug(float* out) {
  __shared__ float rows[32 * 4 + 1];
  int i = threadIdx.x;
  for (int k = 0; k < 5; ++k) rows[i * 4 + k] = i * 10.0f + k;   // FINDS race
  __syncthreads();
  for (int k = 0; k < 4; ++k) out[i * 4 + k] = rows[i * 4 + k];
}
