// __constant__ arrays, structures and pointers.
struct Item { int key; float value; };
__constant__ float weights[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
__constant__ Item items[2] = {{1, 0.5f}, {2, 0.25f}};
__constant__ const float* pointer = weights;
__device__ int counter = -3;
__device__ double values[2][3] = {{1.5}, {2.5, 3.5}};
__device__ const char* names[2] = {"first", "second"};
extern "C" __global__ void constant_memory(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 9; ++k)
    if (i + k < n) sum += x[i + k] * weights[k];
  y[i] = sum + items[i & 1].value * items[0].key + pointer[i % 9] + counter + values[i & 1][i % 3] + names[i & 1][0];
}
