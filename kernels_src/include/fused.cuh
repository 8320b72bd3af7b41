// The base of generated kernels: runs of neighbours, ways to combine, the reduction of columns.
#pragma once

#include <kernwright/expression.cuh>

namespace kernwright {

/// V neighbouring elements in memory, read and written in the type of the computation.
template <typename T, int V>
struct Run {
  T value[V];
  __device__ __forceinline__ Compute<T> operator[](int v) const { return to_compute(value[v]); }
  __device__ __forceinline__ void put(int v, Compute<T> x) { value[v] = from_compute<T>(x); }
};

/// P of them at a time: `from` is a multiple of P elements.
template <int V, int P, typename T>
__device__ __forceinline__ Run<T, V> load(const T* from) {
  Run<T, V> run;
#pragma unroll
  for (int p = 0; p < V / P; ++p) {
    const Pack<T, P> pack = reinterpret_cast<const Pack<T, P>*>(from)[p];
#pragma unroll
    for (int i = 0; i < P; ++i) run.value[p * P + i] = pack.value[i];
  }
  return run;
}

/// The first `count` only, where there are no V.
template <int V, int P, typename T>
__device__ __forceinline__ Run<T, V> load(const T* from, long long count) {
  if (count >= V) return load<V, P>(from);
  Run<T, V> run = {};
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if (v < count) run.value[v] = from[v];
  }
  return run;
}

template <int V, typename T>
__device__ __forceinline__ Run<T, V> load_strided(const T* from, long long stride,
                                                  long long count = V) {
  Run<T, V> run = {};
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if (v < count) run.value[v] = from[v * stride];
  }
  return run;
}

template <int P, typename T, int V>
__device__ __forceinline__ void store(T* to, const Run<T, V>& run) {
#pragma unroll
  for (int p = 0; p < V / P; ++p) {
    Pack<T, P> pack;
#pragma unroll
    for (int i = 0; i < P; ++i) pack.value[i] = run.value[p * P + i];
    reinterpret_cast<Pack<T, P>*>(to)[p] = pack;
  }
}
template <int P, typename T, int V>
__device__ __forceinline__ void store(T* to, const Run<T, V>& run, long long count) {
  if (count >= V) return store<P>(to, run);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if (v < count) to[v] = run.value[v];
  }
}

// ---- further ways to combine (reduce.cuh has the first ones)

struct Product {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a * b;
  }
};
struct All {
  __device__ __forceinline__ int operator()(int a, int b) const { return a & b; }
};
struct Any {
  __device__ __forceinline__ int operator()(int a, int b) const { return a | b; }
};

/// A value and where it stands; a negative place is that of no value.
template <typename T>
struct Placed {
  T value;
  Int64 place;
};
/// NaN wins, and among equals the first place.
template <typename Best>
struct BestPlace {
  template <typename T>
  __device__ __forceinline__ Placed<T> operator()(Placed<T> a, Placed<T> b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    const bool equal = a_is_nan || a.value == b.value;
    if (equal) return a.place < b.place ? a : b;
    return Best()(a.value, b.value) == a.value ? a : b;
  }
};

/// A combination without elements so far has no value.
template <typename T>
struct Maybe {
  T value;
  int some;
};
template <typename Combine>
struct CombinePresent {
  template <typename T>
  __device__ __forceinline__ Maybe<T> operator()(Maybe<T> a, Maybe<T> b) const {
    if (!a.some || !b.some) return a.some ? a : b;
    return {Combine()(a.value, b.value), 1};
  }
};

/// An element in memory under the name of the value, where element and value have different types.
template <typename T>
struct Reference {
  T* place;
  __device__ __forceinline__ operator Compute<T>() const { return to_compute(*place); }
  __device__ __forceinline__ const Reference& operator=(Compute<T> x) const {
    *place = from_compute<T>(x);
    return *this;
  }
  __device__ __forceinline__ const Reference& operator=(const Reference& other) const {
    return *this = static_cast<Compute<T>>(other);
  }
  __device__ __forceinline__ const Reference& operator+=(Compute<T> x) const {
    return *this = *this + x;
  }
  __device__ __forceinline__ const Reference& operator-=(Compute<T> x) const {
    return *this = *this - x;
  }
  __device__ __forceinline__ const Reference& operator*=(Compute<T> x) const {
    return *this = *this * x;
  }
  __device__ __forceinline__ const Reference& operator/=(Compute<T> x) const {
    return *this = *this / x;
  }
};
template <typename T>
__device__ __forceinline__ T& refer(T* place) {
  return *place;
}
__device__ __forceinline__ Reference<Bool> refer(Bool* place) { return {place}; }
template <typename Bits, int E, int M, bool F>
__device__ __forceinline__ Reference<SmallFloat<Bits, E, M, F>> refer(
    SmallFloat<Bits, E, M, F>* place) {
  return {place};
}
template <typename T>
__device__ __forceinline__ Compute<T> refer(const T* place) {
  return to_compute(*place);
}

/// A whole array without gaps, in the flat order of the elements.
template <typename T>
struct RawArray {
  T* data;
  long long count;
  const long long* extents;
  int ndim;
  __device__ __forceinline__ decltype(auto) operator[](long long i) const {
    return refer(data + i);
  }
  __device__ __forceinline__ long long size() const { return count; }
  __device__ __forceinline__ const long long* shape() const { return extents; }
};

/// Indices of an element in all dimensions, the outermost first.
template <int N>
struct Indices {
  long long count;
  long long coordinate[N];
  __device__ __forceinline__ long long size() const { return count; }
  __device__ __forceinline__ const long long* get() const { return coordinate; }
};

/// Combines over the threads of a column: thread i has column i % 32. The order is fixed; every
/// thread must call it, and each thread gets the result of its column.
template <int Threads, typename T, typename Combine>
__device__ __forceinline__ T column_reduce(T value, Combine combine) {
  static_assert(Threads % 32 == 0 && Threads <= 1024, "whole warps");
  __shared__ alignas(16) unsigned char memory[Threads * sizeof(T)];
  T* const partial = reinterpret_cast<T*>(memory);
  __syncthreads();  // an earlier call may still be read
  partial[threadIdx.x] = value;
  __syncthreads();
  T result = partial[threadIdx.x % 32];
#pragma unroll
  for (int other = 1; other < Threads / 32; ++other) {
    result = combine(result, partial[other * 32 + threadIdx.x % 32]);
  }
  return result;
}

}  // namespace kernwright
