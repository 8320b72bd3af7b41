// 128-bit arithmetic with carries.
extern "C" __global__ void wide_integers(__int128* x, unsigned __int128* y) {
  int i = threadIdx.x;
  x[i] = x[i] * x[i + 1] + x[i + 2] - 5;
  y[i] = (y[i] << (i & 63)) + (y[i + 1] >> 3) + y[i + 2] / 10;
}
