// The device runtime by its own name.
// expect: compile
extern "C" __device__ void* cudaGetParameterBufferV2(void*, dim3, dim3, unsigned);
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) cudaGetParameterBufferV2(nullptr, dim3(1), dim3(1), 0);
}
