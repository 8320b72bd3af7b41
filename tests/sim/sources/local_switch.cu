// Local arrays with run-time indices and a dense switch.
extern "C" __global__ void local_switch(const int* x, int* y, int n) {
  int stack[32], top = 0, acc = 0;
  for (int i = 0; i < n; ++i) {
    int v = x[blockIdx.x * n + i];
    switch (v & 15) {
      case 0: stack[top++ & 31] = v; break;
      case 1: acc += stack[--top & 31]; break;
      case 2: acc -= 3; break;
      case 3: acc *= 5; break;
      case 4: acc ^= v; break;
      case 5: acc <<= 1; break;
      case 6: acc >>= 2; break;
      case 7: acc = ~acc; break;
      case 8: acc += v * v; break;
      case 9: acc |= 1; break;
      case 10: acc &= 0xff; break;
      default: acc += 1;
    }
  }
  y[threadIdx.x] = acc + stack[threadIdx.x & 31];
}
