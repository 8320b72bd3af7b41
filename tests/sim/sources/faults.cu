// One mistake in each kernel; the line of each is what the tests look for.
extern "C" __global__ void write_past_end(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = i;
}
extern "C" __global__ void read_before_begin(const int* x, int* y) {
  y[threadIdx.x] = x[(int)threadIdx.x - 3];
}
extern "C" __global__ void null_pointer(int* x) {
  x[threadIdx.x] = 1;
}
extern "C" __global__ void misaligned(char* x, int* y) {
  y[threadIdx.x] = *(int*)(x + 4 * threadIdx.x + 2);
}
extern "C" __global__ void read_after_free(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void shared_past_end(int* y, int n) {
  __shared__ int s[64];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void local_past_end(int* y, int n) {
  int local[8];
  for (int i = 0; i < n; ++i) local[i * 512] = i + y[i];
  y[threadIdx.x] = local[y[0] & 7];
}
extern "C" __global__ void trap_in_block(int block) {
  if (blockIdx.x == block && threadIdx.x == 5) __trap();
}
extern "C" __global__ void assert_positive(const int* x) {
  assert(x[threadIdx.x] > 0);
}
extern "C" __global__ void endless(volatile int* x) {
  while (x[0] == 0) {
  }
}
extern "C" __global__ void write_constant(const int* where) {
  *(int*)where = 1;
}
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void address_of_table(const int** out) {
  out[0] = table;
}
extern "C" __global__ void barrier_in_branch(int* x) {
  if (threadIdx.x < 32) {
    asm volatile("barrier.sync 1, 64;");
  }
  x[threadIdx.x] = 1;
}
extern "C" __global__ void wild_call(void (**f)()) {
  f[0]();
}
extern "C" __global__ void atomic_past_end(int* x) {
  atomicAdd(x + 64, 1);
}
extern "C" __global__ void vector_past_end(float4* x) {
  x[threadIdx.x] = make_float4(1, 2, 3, 4);
}
