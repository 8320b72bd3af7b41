// One block resets a counter plainly while others add to it.
// launch: grid=4 block=32 args=i32*1:zeros
extern "C" __global__ void bug(int* count) {
  if (blockIdx.x == 2 && threadIdx.x == 0) count[0] = -5;   // FINDS race
  if (threadIdx.x == 0) atomicAdd(count, 1);               // FINDS race
}
