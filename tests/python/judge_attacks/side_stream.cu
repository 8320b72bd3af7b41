// Makes a stream of its own.
// expect: compile
typedef struct CUstream_st* cudaStream_t;
extern "C" __device__ int cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) {
    cudaStream_t side;
    cudaStreamCreateWithFlags(&side, 1);
  }
}
