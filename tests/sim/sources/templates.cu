// Instantiated templates over several types.
template <typename T, int N>
__device__ T dot(const T* a, const T* b) {
  T sum = T(0);
  for (int i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}
template <typename T>
__global__ void dots(const T* a, const T* b, T* out) {
  out[threadIdx.x] = dot<T, 5>(a + threadIdx.x * 5, b + threadIdx.x * 5);
}
template __global__ void dots<float>(const float*, const float*, float*);
template __global__ void dots<double>(const double*, const double*, double*);
template __global__ void dots<int>(const int*, const int*, int*);
template __global__ void dots<short>(const short*, const short*, short*);
template __global__ void dots<unsigned long long>(const unsigned long long*, const unsigned long long*,
                                                  unsigned long long*);
template __global__ void dots<unsigned char>(const unsigned char*, const unsigned char*, unsigned char*);
