// Sixteen bytes are written by one thread, and two of them read by another.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  __shared__ int4 s[64];
  int i = threadIdx.x;
  s[i] = make_int4(i, i, i, i);                                       // FINDS race
  y[i] = reinterpret_cast<const short*>(s)[((i + 32) % 64) * 8 + 7];  // FINDS race init
}
