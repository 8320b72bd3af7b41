// Steps of optimisers, norms and scaling of many tensors in one launch.
#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kTensors = 48;
constexpr int kThreads = 256;
constexpr int kChunk = 8192;  // elements of a block

/// The tensors of a launch, a parameter of the kernel; blocks below block_end[t] and from
/// block_end[t - 1] on are of tensor t.
struct Tensors {
  void *param[kTensors], *first[kTensors], *second[kTensors], *third[kTensors], *master[kTensors];
  const void* grad[kTensors];
  UInt64 size[kTensors];
  unsigned block_end[kTensors];
  unsigned number[kTensors];  // the place of each in the caller's list
  int count;
};

struct Settings {
  double rate, beta1, beta2, epsilon, decay, momentum, dampening;
  double gain;          // a factor of the rate: of Decoupled
  const double* words;  // null, or the seven numbers from `rate` to `dampening`
  const float* rates;   // null, or one number to use instead of the rate
  const Int64* steps;   // null, or one number to add to `step`
  Int64 step;           // from 1 on, with what is added
  const float* scale;   // null, or one factor for all gradients
  const int* skip;      // null, or one number: nothing changes unless it is 0
  UInt64 seed;
  bool nesterov, maximize;
};

struct Place {
  int tensor;
  UInt64 first, end;  // elements
};

__device__ __forceinline__ Place find_place(const Tensors& tensors) {
  int low = 0, high = tensors.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (blockIdx.x < tensors.block_end[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const unsigned begin = low > 0 ? tensors.block_end[low - 1] : 0;
  const UInt64 first = static_cast<UInt64>(blockIdx.x - begin) * kChunk;
  return {low, first, min(first + kChunk, tensors.size[low])};
}

// ---- rules; formulas and their order are those of torch.optim

/// Values common to all elements, computed once a block. Each is rounded once, from doubles:
/// 1 - beta of a float's beta is off by 1e-5 of itself.
template <typename Real>
struct Factors {
  Real rate, beta1, beta2, epsilon, decay, keep, step_size, root, momentum, gain;
  Real fresh, fresh1, fresh2;  // weights of a new gradient beside momentum, beta1, beta2
  Real average;                // 1 - momentum
  bool nesterov, begins;
};

template <typename Real>
__device__ Factors<Real> step_factors(Settings s) {
  if (s.words != nullptr) {
    s.rate = s.words[0];
    s.beta1 = s.words[1];
    s.beta2 = s.words[2];
    s.epsilon = s.words[3];
    s.decay = s.words[4];
    s.momentum = s.words[5];
    s.dampening = s.words[6];
  }
  const double rate = s.rates != nullptr ? static_cast<double>(*s.rates) : s.rate;
  const Int64 step = s.step + (s.steps != nullptr ? *s.steps : 0);
  Factors<Real> f;
  f.rate = static_cast<Real>(rate);
  f.beta1 = static_cast<Real>(s.beta1);
  f.beta2 = static_cast<Real>(s.beta2);
  f.epsilon = static_cast<Real>(s.epsilon);
  f.decay = static_cast<Real>(s.decay);
  f.keep = static_cast<Real>(1 - rate * s.decay);
  f.step_size = static_cast<Real>(rate / (1 - pow(s.beta1, static_cast<double>(step))));
  f.root = static_cast<Real>(1 / sqrt(1 - pow(s.beta2, static_cast<double>(step))));
  f.momentum = static_cast<Real>(s.momentum);
  f.gain = static_cast<Real>(rate * s.gain);
  f.average = static_cast<Real>(1 - s.momentum);
  f.fresh = static_cast<Real>(1 - s.dampening);
  f.fresh1 = static_cast<Real>(1 - s.beta1);
  f.fresh2 = static_cast<Real>(1 - s.beta2);
  f.nesterov = s.nesterov;
  f.begins = step <= 1;
  return f;
}

/// A state that a rule does not have is 0 and is not stored. A rule whose kReads is false takes no
/// parameter, and writes one.
template <typename Real>
struct States {
  Real first, second, third;
};

/// The moments m and v of the gradient, and the step by them. With kAmsgrad the largest v so far
/// stands for v in the root (S. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond",
/// 2018).
template <bool kAmsgrad, typename Real>
__device__ __forceinline__ void adam_step(const Factors<Real>& f, Real& p, Real g,
                                          States<Real>& s) {
  s.first += (g - s.first) * f.fresh1;
  s.second = f.beta2 * s.second + f.fresh2 * (g * g);
  if (kAmsgrad) s.third = Maximum()(s.third, s.second);
  p -= f.step_size * (s.first / (sqrt(kAmsgrad ? s.third : s.second) * f.root + f.epsilon));
}
template <bool kAmsgrad>
struct AdamW {
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>& s) {
    p *= f.keep;
    adam_step<kAmsgrad>(f, p, g, s);
  }
};
template <bool kAmsgrad>
struct Adam {
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>& s) {
    if (f.decay != 0) g += f.decay * p;  // infinity stays it
    adam_step<kAmsgrad>(f, p, g, s);
  }
};
struct Momentum {
  static constexpr int kStates = 1;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>& s) {
    if (f.decay != 0) g += f.decay * p;  // infinity stays it
    s.first = f.begins ? g : f.momentum * s.first + f.fresh * g;
    p -= f.rate * (f.nesterov ? g + f.momentum * s.first : s.first);
  }
};
struct Plain {
  static constexpr int kStates = 0;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>&) {
    if (f.decay != 0) g += f.decay * p;
    p -= f.rate * g;
  }
};
/// X. Chen et al., "Symbolic discovery of optimization algorithms", 2023.
struct Lion {
  static constexpr int kStates = 1;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>& s) {
    const Real blend = f.beta1 * s.first + f.fresh1 * g;
    const Real sign = blend > 0 ? Real(1) : blend < 0 ? Real(-1) : blend;
    p = p * f.keep - f.rate * sign;
    s.first = f.beta2 * s.first + f.fresh2 * g;
  }
};
/// The three pieces of Muon around its Newton-Schulz iteration, whose source is
/// https://github.com/KellerJordan/Muon. The direction: the momentum with the new
/// gradient, which is not stored.
struct Direction {
  static constexpr int kStates = 1;
  static constexpr bool kReads = false;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>& s) {
    const Real average = s.first + (g - s.first) * f.average;
    p = f.nesterov ? g + f.momentum * (average - g) : average;
  }
};
/// The momentum itself stands where parameters do.
struct Average {
  static constexpr int kStates = 0;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>&) {
    p += (g - p) * f.average;
  }
};
/// The step by an orthogonal direction.
struct Decoupled {
  static constexpr int kStates = 0;
  static constexpr bool kReads = true;
  template <typename Real>
  __device__ static void apply(const Factors<Real>& f, Real& p, Real g, States<Real>&) {
    p = p * f.keep - f.gain * g;
  }
};

// ---- rounding

template <typename T>
__device__ __forceinline__ T rounded(Compute<T> x, unsigned) {
  return from_compute<T>(x);
}
/// Up or down, with the chance of how near each is.
template <>
__device__ __forceinline__ BFloat16 rounded<BFloat16>(float x, unsigned random) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return from_compute<BFloat16>(x);
  BFloat16 result;
  result.bits = static_cast<unsigned short>((bits + (random & 0xffffu)) >> 16);
  return result;
}

__device__ __forceinline__ unsigned word(uint4 bits, int i) {
  return i == 0 ? bits.x : i == 1 ? bits.y : i == 2 ? bits.z : bits.w;
}

// ---- kernels

/// The elements of a tensor that a thread works on at a time; those behind the end are 0.
template <typename T, int Width>
__device__ __forceinline__ Pack<T, Width> load(const void* from, UInt64 at, UInt64 end) {
  const T* const values = static_cast<const T*>(from);
  Pack<T, Width> pack = {};
  if (at + Width <= end) return *reinterpret_cast<const Pack<T, Width>*>(values + at);
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    if (at + i < end) pack.value[i] = values[at + i];
  }
  return pack;
}
template <typename T, int Width>
__device__ __forceinline__ void store(void* to, UInt64 at, UInt64 end, const Pack<T, Width>& pack) {
  T* const values = static_cast<T*>(to);
  if (at + Width <= end) {
    *reinterpret_cast<Pack<T, Width>*>(values + at) = pack;
    return;
  }
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    if (at + i < end) values[at + i] = pack.value[i];
  }
}

/// `kMaster`: the parameters are kept in State too, and those of Param are rounded copies.
template <typename Rule, typename Param, typename Grad, typename State, bool kMaster,
          bool kStochastic, int Width>
__global__ void __launch_bounds__(kThreads)
    optimizer_step(const Tensors tensors, const Settings settings) {
  // Doubles stay doubles; all else is computed in float.
  using Real = Compute<State>;
  if (settings.skip != nullptr && *settings.skip != 0) return;
  __shared__ Factors<Real> shared;
  if (threadIdx.x == 0) shared = step_factors<Real>(settings);
  const Place place = find_place(tensors);
  const int t = place.tensor;
  Real scale = settings.scale != nullptr ? static_cast<Real>(*settings.scale) : Real(1);
  if (settings.maximize) scale = -scale;
  const Int64 step = settings.step + (settings.steps != nullptr ? *settings.steps : 0);
  __syncthreads();
  const Factors<Real> f = shared;
#pragma unroll 2
  for (UInt64 i = place.first + threadIdx.x * Width; i < place.end; i += kThreads * Width) {
    const auto grad = load<Grad, Width>(tensors.grad[t], i, place.end);
    Pack<Param, Width> param = {};
    Pack<State, Width> master = {}, first = {}, second = {}, third = {};
    if (kMaster) {
      master = load<State, Width>(tensors.master[t], i, place.end);
    } else if (Rule::kReads) {
      param = load<Param, Width>(tensors.param[t], i, place.end);
    }
    if (Rule::kStates > 0) first = load<State, Width>(tensors.first[t], i, place.end);
    if (Rule::kStates > 1) second = load<State, Width>(tensors.second[t], i, place.end);
    if (Rule::kStates > 2) third = load<State, Width>(tensors.third[t], i, place.end);
    uint4 random = {0, 0, 0, 0};
    if (kStochastic) {
      const UInt64 sequence = static_cast<UInt64>(step) << 32 | tensors.number[t];
      random = Philox(settings.seed, sequence, i / 4).next4();
    }
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      Real p = kMaster ? static_cast<Real>(to_compute(master.value[j]))
                       : static_cast<Real>(to_compute(param.value[j]));
      States<Real> states = {to_compute(first.value[j]), to_compute(second.value[j]),
                             to_compute(third.value[j])};
      Rule::apply(f, p, static_cast<Real>(to_compute(grad.value[j])) * scale, states);
      if (kMaster) master.value[j] = from_compute<State>(p);
      const auto narrow = static_cast<Compute<Param>>(p);
      param.value[j] = kStochastic
                           ? rounded<Param>(narrow, word(random, static_cast<int>((i + j) % 4)))
                           : from_compute<Param>(narrow);
      first.value[j] = from_compute<State>(states.first);
      second.value[j] = from_compute<State>(states.second);
      third.value[j] = from_compute<State>(states.third);
    }
    store(tensors.param[t], i, place.end, param);
    if (kMaster) store(tensors.master[t], i, place.end, master);
    if (Rule::kStates > 0) store(tensors.first[t], i, place.end, first);
    if (Rule::kStates > 1) store(tensors.second[t], i, place.end, second);
    if (Rule::kStates > 2) store(tensors.third[t], i, place.end, third);
  }
}

/// What is added up of a gradient for the norm of an order.
enum NormOrder { kLargest, kMagnitudes, kSquares, kPowers };

/// partial[block]: the sum of |g| to the power of `order` over a chunk, or its largest magnitude.
template <typename Grad, NormOrder kOrder, int Width>
__global__ void __launch_bounds__(kThreads)
    chunk_norms(double* partial, const Tensors tensors, double order) {
  using Real = Compute<Grad>;
  const Place place = find_place(tensors);
  const Real power = static_cast<Real>(order);
  Real local = 0;
#pragma unroll 4
  for (UInt64 i = place.first + threadIdx.x * Width; i < place.end; i += kThreads * Width) {
    const auto grad = load<Grad, Width>(tensors.grad[place.tensor], i, place.end);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const Real g = to_compute(grad.value[j]);
      if (kOrder == kLargest) local = Maximum()(local, abs(g));
      if (kOrder == kMagnitudes) local += abs(g);
      if (kOrder == kSquares) local += g * g;
      if (kOrder == kPowers) local += pow(abs(g), power);
    }
  }
  const double wide = static_cast<double>(local);
  const double all = kOrder == kLargest ? block_reduce<kThreads>(wide, Maximum(), 0.0)
                                        : block_reduce<kThreads>(wide, Sum(), 0.0);
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

/// The norm, and the factor of the gradients to keep it at most `limit`. One block.
template <NormOrder kOrder>
__global__ void __launch_bounds__(1024)
    finish_norm(float* norm, float* scale, const double* partial, unsigned count, double limit,
                double order) {
  double local = 0;
  for (unsigned i = threadIdx.x; i < count; i += 1024) {
    local = kOrder == kLargest ? Maximum()(local, partial[i]) : local + partial[i];
  }
  local = kOrder == kLargest ? block_reduce<1024>(local, Maximum(), 0.0)
                             : block_reduce<1024>(local, Sum(), 0.0);
  if (threadIdx.x != 0) return;
  double whole = local;
  if (kOrder == kSquares) whole = sqrt(local);
  if (kOrder == kPowers) whole = pow(local, 1 / order);
  const double factor = limit / (whole + 1e-6);
  *norm = static_cast<float>(whole);
  *scale = static_cast<float>(factor > 1 ? 1.0 : factor);
}

/// Multiplies in place; the tensors stand where parameters do.
template <typename Grad, int Width>
__global__ void __launch_bounds__(kThreads)
    scale_tensors(const Tensors tensors, const float* scale) {
  using Real = Compute<Grad>;
  const Real factor = static_cast<Real>(*scale);
  if (factor == 1) return;
  const Place place = find_place(tensors);
  for (UInt64 i = place.first + threadIdx.x * Width; i < place.end; i += kThreads * Width) {
    auto grad = load<Grad, Width>(tensors.param[place.tensor], i, place.end);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      grad.value[j] = from_compute<Grad>(to_compute(grad.value[j]) * factor);
    }
    store(tensors.param[place.tensor], i, place.end, grad);
  }
}

/// to = alpha * to + beta * from, where `to` stands for the parameters, `from` for the gradients.
/// Where `count` points to 0, `to` begins as 0 and is not read. Where `weight` points to 0, nothing
/// changes, whatever `from` holds; with `is_factor` it is one more factor of `from`.
template <typename To, typename From, int Width>
__global__ void __launch_bounds__(kThreads)
    blend_tensors(const Tensors tensors, double alpha, double beta, const Int64* count,
                  const Int64* weight, int is_factor) {
  using Real = Compute<To>;
  if (weight != nullptr && *weight == 0) return;
  const bool begins = count != nullptr && *count == 0;
  const Real kept = static_cast<Real>(alpha);
  const bool weighted = weight != nullptr && is_factor != 0;
  const Real added = static_cast<Real>(beta * (weighted ? static_cast<double>(*weight) : 1.0));
  const Place place = find_place(tensors);
  for (UInt64 i = place.first + threadIdx.x * Width; i < place.end; i += kThreads * Width) {
    const auto from = load<From, Width>(tensors.grad[place.tensor], i, place.end);
    Pack<To, Width> to = {};
    if (!begins) to = load<To, Width>(tensors.param[place.tensor], i, place.end);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const Real more = added * static_cast<Real>(to_compute(from.value[j]));
      to.value[j] = from_compute<To>(begins ? more : kept * to_compute(to.value[j]) + more);
    }
    store(tensors.param[place.tensor], i, place.end, to);
  }
}
