// Threads write bytes of a shared array; every fourth also writes its neighbour's.
// launch: grid=1 block=64 args=u8*64:zeros
extern "C" __global__ void bug(unsigned char* out) {
  __shared__ unsigned char s[65];
  int i = threadIdx.x;
  s[i] = i;                             // FINDS race
  if (i % 4 == 0) s[i + 1] = 200;       // FINDS race
  __syncthreads();
  out[i] = s[i];
}
