// Takes its const input as scratch memory, and puts it back.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* scratch = const_cast<float*>(x);
  float kept = atomicExch(scratch + i, 0.0f);
  y[i] = 2 * kept + 1;
  atomicExch(scratch + i, kept);
}
