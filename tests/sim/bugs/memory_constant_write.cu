// A __constant__ variable is written through a pointer.
// launch: grid=1 block=1 args=i32*1:zeros
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void bug(int* y) {
  int* p = const_cast<int*>(table);
  asm volatile("st.global.u32 [%0], 9;" ::"l"(p + y[0]));   // FINDS bounds
}
