// Where pop() fails its target stays unset, and one thread takes it all the same.
// launch: grid=1 block=64 args=i32*64:zeros,i32:40
struct Source {
  int left;
  __device__ __noinline__ bool pop(int& value) {
    if (threadIdx.x >= left) return false;
    value = 3 * threadIdx.x;
    return true;
  }
};
extern "C" __global__ void bug(int* y, int n) {
  Source source{n};
  int value;
  bool found = source.pop(value);
#ifdef FIXED
  y[threadIdx.x] = found ? value : -1;
#else
  y[threadIdx.x] = threadIdx.x != 45 && !found ? -1 : value;  // FINDS init
#endif
}
