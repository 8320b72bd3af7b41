// A float is read at an odd address.
// launch: grid=1 block=32 args=u8*160:zeros,f32*32:zeros
extern "C" __global__ void bug(const unsigned char* x, float* y) {
  y[threadIdx.x] = *reinterpret_cast<const float*>(x + 4 * threadIdx.x + 1);   // FINDS alignment
}
