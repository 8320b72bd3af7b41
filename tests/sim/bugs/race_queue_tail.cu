// Threads append to a queue in global memory with a tail that is counted up without an atomic.
// launch: grid=4 block=32 args=i32*1:zeros,i32*128:zeros
extern "C" __global__ void bug(int* tail, int* queue) {
  if (threadIdx.x != 0) return;
#ifdef FIXED
  int at = atomicAdd(tail, 1);
#else
  int at = *tail;  // FINDS race
  *tail = at + 1;  // FINDS race
#endif
  queue[at] = 1;
}
