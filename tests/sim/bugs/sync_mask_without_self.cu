// Lanes call a vote with a mask that leaves them out.
// launch: grid=1 block=32 args=i32*32:iota
extern "C" __global__ void bug(int* y) {
  unsigned v = __ballot_sync(0x0000ffffu, y[threadIdx.x] > 3);    // FINDS sync
  y[threadIdx.x] = v;
}
