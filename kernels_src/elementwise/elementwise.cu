// One operation on each element of up to three operands: arrays of any type and strides, numbers.
#include <kernwright/functions.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

template <typename L, typename T>
struct Converted {
  __device__ static Compute<L> apply(T x) { return to_compute(Element<L, T>::apply(x)); }
};
template <typename T>
struct Converted<T, T> {
  __device__ static Compute<T> apply(T x) { return to_compute(x); }
};
template <typename Bits, int E, int M, bool F>
struct Converted<float, SmallFloat<Bits, E, M, F>> {
  __device__ static float apply(SmallFloat<Bits, E, M, F> x) { return to_compute(x); }
};

template <typename T, typename U>
constexpr bool kSameType = false;
template <typename T>
constexpr bool kSameType<T, T> = true;

/// An array whose elements follow each other (along the innermost dimension), computed with as L.
template <typename T, typename L>
struct Each {
  using Number = Compute<L>;
  const char* data;
  template <int N>
  __device__ __forceinline__ void load(long long offset, Number (&to)[N]) const {
    const auto pack = *reinterpret_cast<const Pack<T, N>*>(data + offset);
    if constexpr (kSameType<T, L>) {
      unpack(to, pack.value);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) to[j] = Converted<L, T>::apply(pack.value[j]);
    }
  }
  template <int N>
  __device__ static constexpr long long step() {
    return N * static_cast<long long>(sizeof(T));
  }
};

/// An array with one element for all (along the innermost dimension).
template <typename T, typename L>
struct Same {
  using Number = Compute<L>;
  const char* data;
  template <int N>
  __device__ __forceinline__ void load(long long offset, Number (&to)[N]) const {
    const Number number = Converted<L, T>::apply(*reinterpret_cast<const T*>(data + offset));
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] = number;
  }
  template <int N>
  __device__ static constexpr long long step() {
    return 0;
  }
};

/// A number.
template <typename L>
struct Value {
  using Number = Compute<L>;
  L value;
  template <int N>
  __device__ __forceinline__ void load(long long, Number (&to)[N]) const {
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] = to_compute(value);
  }
  template <int N>
  __device__ static constexpr long long step() {
    return 0;
  }
};

template <typename Operand, int N>
struct Loaded {
  typename Operand::Number number[N];
  __device__ __forceinline__ Loaded(const Operand& operand, long long offset) {
    operand.load(offset, number);
  }
};

template <typename O, typename R>
struct Stored {
  __device__ static O apply(R x) { return Element<O, R>::apply(x); }
};
template <typename R>
struct Stored<R, R> {
  __device__ static R apply(R x) { return x; }
};

/// The result has the type R and is stored as O.
template <typename Op, typename R, typename O, int N, typename... Inputs>
__device__ __forceinline__ void compute(char* to, const Inputs&... inputs) {
  Pack<O, N> pack;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    pack.value[j] = Stored<O, R>::apply(from_compute<R>(Apply<Op, R>::apply(inputs.number[j]...)));
  }
  *reinterpret_cast<Pack<O, N>*>(to) = pack;
}

/// The distance of a place, `step` bytes each.
template <typename Index>
__device__ __forceinline__ long long at(Index place, long long step) {
  return static_cast<long long>(place) * step;
}

/// The values of one operand at two places.
template <typename Operand, int N>
struct LoadedTwice {
  Loaded<Operand, N> first, second;
  __device__ __forceinline__ LoadedTwice(const Operand& operand, long long a, long long b)
      : first(operand, a), second(operand, b) {}
};

/// At two places; all operands are loaded before.
template <typename Op, typename R, typename O, int N, typename... Inputs>
__device__ __forceinline__ void compute_twice(char* a, char* b, const Inputs&... inputs) {
  compute<Op, R, O, N>(a, inputs.first...);
  compute<Op, R, O, N>(b, inputs.second...);
}

/// Contiguous arrays: each thread takes `kPacks` (1 or 2) packs of N elements, and loads them all
/// before it stores. With one pack there is also a thread for each element behind the last pack.
/// `Index` holds count plus one grid of threads.
template <typename Op, typename R, typename O, int N, int kPacks, typename Index,
          typename... Operands>
__global__ void flat(char* out, Index count, const Operands... operands) {
  const Index packs = count / N;
  const Index i = static_cast<Index>(blockIdx.x) * (kPacks * blockDim.x) + threadIdx.x;
  const Index k = i + blockDim.x;
  constexpr long long size = sizeof(O);
  if (kPacks == 2 && k < packs) {
    compute_twice<Op, R, O, N>(
        out + at(i, N * size), out + at(k, N * size),
        LoadedTwice<Operands, N>(operands, at(i, Operands::template step<N>()),
                                 at(k, Operands::template step<N>()))...);
  } else if (__builtin_expect(i < packs, 1)) {
    compute<Op, R, O, N>(out + at(i, N * size),
                         Loaded<Operands, N>(operands, at(i, Operands::template step<N>()))...);
  } else if (kPacks == 1 && N > 1) {
    // The threads behind the last pack take the remaining elements, so that all earlier threads end
    // at once.
    const Index rest = packs * N + (i - packs);
    if (rest >= count) return;
    compute<Op, R, O, 1>(out + at(rest, size),
                         Loaded<Operands, 1>(operands, at(rest, Operands::template step<1>()))...);
  }
  if constexpr (kPacks == 2 && N > 1) {  // by the first threads of the last block
    const Index rest = packs * N + threadIdx.x;
    if (blockIdx.x != gridDim.x - 1 || rest >= count) return;
    compute<Op, R, O, 1>(out + at(rest, size),
                         Loaded<Operands, 1>(operands, at(rest, Operands::template step<1>()))...);
  }
}

template <typename Op, typename R, typename O, int N, typename P, typename A>
__device__ __forceinline__ void compute_at(const P& place, char* out, const A& a) {
  compute<Op, R, O, N>(out + place.offset[0], Loaded<A, N>(a, place.offset[1]));
}
template <typename Op, typename R, typename O, int N, typename P, typename A, typename B>
__device__ __forceinline__ void compute_at(const P& place, char* out, const A& a, const B& b) {
  compute<Op, R, O, N>(out + place.offset[0], Loaded<A, N>(a, place.offset[1]),
                       Loaded<B, N>(b, place.offset[2]));
}
template <typename Op, typename R, typename O, int N, typename P, typename A, typename B,
          typename C>
__device__ __forceinline__ void compute_at(const P& place, char* out, const A& a, const B& b,
                                           const C& c) {
  compute<Op, R, O, N>(out + place.offset[0], Loaded<A, N>(a, place.offset[1]),
                       Loaded<B, N>(b, place.offset[2]), Loaded<C, N>(c, place.offset[3]));
}

/// The result (view 0) and operands (1 to 3) of any strides, in packs of N along the innermost
/// dimension: extent 0 and strides 0 of `view` count packs. With N = 1 the innermost strides are
/// any.
template <typename Op, typename R, typename O, int N, typename Index, typename Offset,
          typename... Operands>
__global__ void strided(char* out, Index packs, const Walk<4, 8, Offset> view,
                        const Operands... operands) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += step) {
    compute_at<Op, R, O, N>(walk_offsets(view, i), out, operands...);
  }
}
