// All blocks count in one word, with an atomic operation of block scope.
// launch: grid=4 block=64 args=i32*1:zeros
extern "C" __global__ void bug(int* count) {
  atomicAdd_block(count, 1);  // FINDS race
}
