// malloc, free, memcpy, memset and alloca on the device.
extern "C" __global__ void device_heap(int** out, const char* text, char* copy, int n) {
  int* p = (int*)malloc(sizeof(int) * (threadIdx.x + 1));
  if (p) p[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = p;
  if (threadIdx.x & 1) free(p);
  memcpy(copy, text, n);
  memset(copy + n, 7, 33);
}
