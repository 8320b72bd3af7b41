// Compiles for ever.
// expect: timeout compile
template <int N, int M = 0>
struct bomb {
  static const long long value = bomb<N - 1, 2 * M>::value + bomb<N - 1, 2 * M + 1>::value;
};
template <int M>
struct bomb<0, M> {
  static const long long value = M;
};
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + bomb<26>::value;
}
