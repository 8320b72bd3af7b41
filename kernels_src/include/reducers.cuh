// The reductions of arrays, a struct each: what a thread gathers, and how two results become one.
#pragma once

#include <kernwright/accumulate.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

// Every reducer has
//   Input, Output  the types of the elements and of the result
//   Part           what one thread gathers from at most kLongestPart elements, from begin() by
//                  add()
//   State          what close() makes of a Part; combine() joins two, and does not care which is
//                  which
//   kClosesParts   whether close_parts() makes a State of the parts of a thread at less cost
//   finish()       the result

/// The parameters of a reduction: how many elements become one, and a parameter of the reducer.
struct Call {
  double count;
  double parameter;
};

template <typename In, typename Out, typename StateType>
struct Reducer {
  using Input = In;
  using Output = Out;
  using State = StateType;
  using Part = StateType;
  static constexpr bool kClosesParts = false;
  __device__ static State close(const Part& part) { return part; }
};

/// The sum, of elements that are taken as `As`.
template <typename In, typename As, typename Value = Accumulator<As>>
struct Total : Reducer<In, As, Value> {
  __device__ static Value begin() { return Value{}; }
  template <typename Index>
  __device__ static void add(Value& part, In x, Index, const Call&) {
    part = plus(part, Taken<As, In, Value>::apply(x));
  }
  __device__ static Value combine(Value a, Value b) { return plus(a, b); }
  __device__ static As finish(Value sum, Call) { return narrow<As>(sum); }
};

template <typename In, typename As, typename Value = Accumulator<As>>
struct Product : Reducer<In, As, Value> {
  __device__ static Value begin() { return OneValue<Value>::value(); }
  template <typename Index>
  __device__ static void add(Value& part, In x, Index, const Call&) {
    part = times(part, Taken<As, In, Value>::apply(x));
  }
  __device__ static Value combine(Value a, Value b) { return times(a, b); }
  __device__ static As finish(Value product, Call) { return narrow<As>(product); }
};

template <typename In, typename As, typename Value = Accumulator<As>>
struct Average : Total<In, As> {
  __device__ static As finish(Value sum, Call call) {
    return narrow<As>(divided(sum, static_cast<Real<Value>>(call.count)));
  }
};

/// `Order` is Maximum or Minimum: NaN wins.
template <typename In, typename As, typename Order, bool kLargest, typename Value = Word<As>>
struct Extreme : Reducer<In, As, Value> {
  __device__ static Value begin() {
    return kLargest ? Ends<Compute<As>>::lowest() : Ends<Compute<As>>::highest();
  }
  template <typename Index>
  __device__ static void add(Value& part, In x, Index, const Call&) {
    part = Order()(part, Taken<As, In, Value>::apply(x));
  }
  __device__ static Value combine(Value a, Value b) { return Order()(a, b); }
  __device__ static As finish(Value value, Call) { return narrow<As>(value); }
};
template <typename In, typename As>
using Largest = Extreme<In, As, Maximum, true>;
template <typename In, typename As>
using Smallest = Extreme<In, As, Minimum, false>;

template <typename Value, typename Index>
struct Place {
  Value value;
  Index index;
};

/// The index of the extreme: NaN is beyond all numbers, the first of equal elements wins.
template <typename In, typename Index, bool kLargest, typename Value = Word<In>>
struct ExtremePlace : Reducer<In, Int64, Place<Value, Index>> {
  using State = Place<Value, Index>;
  __device__ static State begin() {
    return {kLargest ? Ends<Compute<In>>::lowest() : Ends<Compute<In>>::highest(),
            static_cast<Index>(-1)};
  }
  __device__ static bool wins(State a, State b) {
    if (a.value != a.value) return b.value == b.value || a.index < b.index;
    if (a.value == b.value) return a.index < b.index;
    return kLargest ? a.value > b.value : a.value < b.value;
  }
  __device__ static void add(State& part, In x, Index index, const Call&) {
    const State next = {Taken<In, In, Value>::apply(x), index};
    if (wins(next, part)) part = next;
  }
  __device__ static State combine(State a, State b) { return wins(b, a) ? b : a; }
  __device__ static Int64 finish(State state, Call) { return static_cast<Int64>(state.index); }
};
template <typename In, typename Index>
using LargestPlace = ExtremePlace<In, Index, true>;
template <typename In, typename Index>
using SmallestPlace = ExtremePlace<In, Index, false>;

template <typename In, typename As>
struct NonzeroCount : Reducer<In, Int64, Int64> {
  __device__ static Int64 begin() { return 0; }
  template <typename Index>
  __device__ static void add(Int64& part, In x, Index, const Call&) {
    part += is_nonzero(x) ? 1 : 0;
  }
  __device__ static Int64 combine(Int64 a, Int64 b) { return a + b; }
  __device__ static Int64 finish(Int64 count, Call) { return count; }
};

/// Whether an element is NaN; a complex one if a part of it is.
template <typename T>
__device__ __forceinline__ bool is_no_number(T x) {
  return x != x;
}
template <typename Part>
__device__ __forceinline__ bool is_no_number(Complex<Part> x) {
  return x.real != x.real || x.imag != x.imag;
}

/// A reduction that passes over NaN.
template <typename In, typename Whole>
struct PassingNan : Whole {
  template <typename Part, typename Index>
  __device__ static void add(Part& part, In x, Index index, const Call& call) {
    if (!is_no_number(to_compute(x))) Whole::add(part, x, index, call);
  }
};
template <typename In, typename As>
using NumberTotal = PassingNan<In, Total<In, As>>;
template <typename In, typename As>
using NumberProduct = PassingNan<In, Product<In, As>>;

template <typename Value>
struct CountedPart {
  Value sum;
  unsigned count;
};
/// The count is a complex number for complex ones, so that no byte is left unwritten.
template <typename Value>
struct CountedSum {
  Value sum, count;
};
template <typename In, typename As, typename Value = Accumulator<As>>
struct NumberAverage : Reducer<In, As, CountedSum<Wide<Value>>> {
  using Part = CountedPart<Value>;
  using WideValue = Wide<Value>;
  using State = CountedSum<WideValue>;
  __device__ static Part begin() { return {Value{}, 0u}; }
  template <typename Index>
  __device__ static void add(Part& part, In x, Index, const Call&) {
    if (is_no_number(to_compute(x))) return;
    part.sum = plus(part.sum, Taken<As, In, Value>::apply(x));
    ++part.count;
  }
  __device__ static State close(const Part& part) {
    const WideValue count = scaled(OneValue<WideValue>::value(), Real<WideValue>(part.count));
    return {Between<WideValue, Value>::apply(part.sum), count};
  }
  __device__ static State combine(const State& a, const State& b) {
    return {plus(a.sum, b.sum), plus(a.count, b.count)};
  }
  __device__ static As finish(const State& state, Call) {
    const WideValue mean = divided(state.sum, magnitude(state.count));
    return narrow<As>(Between<Value, WideValue>::apply(mean));
  }
};

/// NaN where no element is a number: it stands for no element so far.
template <typename In, typename As, bool kLargest, typename Value = Word<As>>
struct ExtremeNumber : Reducer<In, As, Value> {
  __device__ static Value begin() { return static_cast<Value>(nan("")); }
  __device__ static Value combine(Value a, Value b) {
    if (a != a) return b;
    if (b != b) return a;
    return kLargest == (a > b) ? a : b;
  }
  template <typename Index>
  __device__ static void add(Value& part, In x, Index, const Call&) {
    part = combine(part, Taken<As, In, Value>::apply(x));
  }
  __device__ static As finish(Value value, Call) { return narrow<As>(value); }
};
template <typename In, typename As>
using LargestNumber = ExtremeNumber<In, As, true>;
template <typename In, typename As>
using SmallestNumber = ExtremeNumber<In, As, false>;

/// Sums of the distances from one of the elements: their squares add up to at most kLongestPart + 1
/// times the result, so the difference loses few digits.
template <typename Value>
struct SpreadPart {
  Value pivot, sum;
  Real<Value> square;
  unsigned count;
};
template <typename Value>
struct SpreadState {
  Value mean;
  Real<Value> square;  ///< the sum of the squares of the distances from the mean
  Real<Value> count;
};

/// Variance or standard deviation; Call::parameter is the correction. Parts are joined by Chan's
/// formula, in double for floats. (T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the
/// sample variance", 1983.) Squares that are beyond the range make it infinite, an infinite element
/// makes it NaN.
template <typename In, typename As, bool kRoot, typename Value = Accumulator<As>>
struct Spread : Reducer<In, Real<As>, SpreadState<Wide<Value>>> {
  using Part = SpreadPart<Value>;
  using WideValue = Wide<Value>;
  using WideReal = Real<WideValue>;
  using State = SpreadState<WideValue>;
  __device__ static Part begin() { return {Value{}, Value{}, Real<Value>(0), 0u}; }
  template <typename Index>
  __device__ static void add(Part& part, In x, Index, const Call&) {
    const Value value = Taken<As, In, Value>::apply(x);
    if (part.count == 0) part.pivot = value;
    const Value distance = minus(value, part.pivot);
    part.sum = plus(part.sum, distance);
    part.square += squared(distance);
    part.square += zero_if_finite(value);
    ++part.count;
  }
  __device__ static State close(const Part& part) { return moments<WideValue>(part, WideValue{}); }
  /// The parts are joined in the type of the sums, as distances from the pivot of one part: few
  /// distances are much larger than the distances of the elements. Divisions in double would take
  /// longer than the rest of a short row.
  static constexpr bool kClosesParts = true;
  template <int kParts>
  __device__ static State close_parts(const Part (&part)[kParts]) {
    Value pivot = part[kParts - 1].pivot;
#pragma unroll
    for (int j = kParts - 2; j >= 0; --j) pivot = part[j].count > 0 ? part[j].pivot : pivot;
    SpreadState<Value> found[kParts];
#pragma unroll
    for (int j = 0; j < kParts; ++j) {
      found[j] = moments<Value>(part[j], pivot);
      const Real<Value> reach = squared(found[j].mean);
      if (isinf(reach)) found[j].square += reach;
    }
#pragma unroll
    for (int half = kParts / 2; half > 0; half /= 2) {
#pragma unroll
      for (int j = 0; j < half; ++j) found[j] = joined(found[j], found[j + half]);
    }
    const WideValue mean = plus(Between<WideValue, Value>::apply(pivot),
                                Between<WideValue, Value>::apply(found[0].mean));
    return {mean, static_cast<WideReal>(found[0].square), static_cast<WideReal>(found[0].count)};
  }
  __device__ static State combine(const State& a, const State& b) { return joined(a, b); }

  /// The moments of a part, the mean as the distance from `origin`.
  template <typename To>
  __device__ static SpreadState<To> moments(const Part& part, To origin) {
    const Real<To> count = static_cast<Real<To>>(part.count);
    if (part.count == 0) return {To{}, Real<To>(0), Real<To>(0)};
    const To distance = divided(Between<To, Value>::apply(part.sum), count);
    const To mean = plus(minus(Between<To, Value>::apply(part.pivot), origin), distance);
    const Real<To> squares = static_cast<Real<To>>(part.square);
    if (isinf(squares)) return {mean, squares, count};
    const Real<To> square = squares - squared(distance) * count;
    return {mean, square < 0 ? Real<To>(0) : square, count};
  }
  template <typename To>
  __device__ static SpreadState<To> joined(const SpreadState<To>& a, const SpreadState<To>& b) {
    using Number = Real<To>;
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    // Nearly all parts are equally long: no division then.
    const Number count = a.count + b.count;
    const Number share = a.count == b.count ? Number(0.5) : b.count / count;
    const To distance = minus(b.mean, a.mean);
    const To mean = plus(a.mean, scaled(distance, share));
    const Number square = a.square + b.square;
    if (isinf(square)) return {mean, square, count};  // the means may be beyond the range too
    return {mean, square + squared(distance) * a.count * share, count};
  }
  __device__ static Real<As> finish(const State& state, Call call) {
    const double left = call.count - call.parameter;
    const WideReal variance = state.square / static_cast<WideReal>(left > 0 ? left : 0);
    return narrow<Real<As>>(kRoot ? sqrt(variance) : variance);
  }
};
/// The mean is a distance from an element, which elements of 16 bits have without rounding: float
/// holds the distance to far more digits than the result has.
struct alignas(16) ShortSpreadState {
  float pivot, mean;
  float square;  ///< the mean of the squares of the distances from the mean: it cannot overflow
  float count;
};

/// Spread of elements of 16 bits, joined in float. All parts of a thread become one part, with one
/// division for all of them.
template <typename In, typename As, bool kRoot>
struct ShortSpread : Spread<In, As, kRoot> {
  using Part = SpreadPart<float>;
  using State = ShortSpreadState;
  __device__ static State close(const Part& part) {
    const auto count = static_cast<float>(part.count);
    const float share = __fdividef(1.0f, fmaxf(count, 1.0f));
    if (isinf(part.square)) return {part.pivot, 0.0f, part.square, count};
    const float mean = part.sum * share;
    // The squares of the distances from `mean`, which is rounded.
    const float square = part.square - mean * (2 * part.sum - count * mean);
    return {part.pivot, mean, square < 0 ? 0.0f : square * share, count};
  }
  template <int kParts>
  __device__ static State close_parts(const Part (&part)[kParts]) {
    Part all = {part[kParts - 1].pivot, 0.0f, 0.0f, 0u};
#pragma unroll
    for (int j = kParts - 2; j >= 0; --j) {
      if (part[j].count > 0) all.pivot = part[j].pivot;
    }
#pragma unroll
    for (int j = 0; j < kParts; ++j) {
      const float shift = part[j].pivot - all.pivot;
      const float sum = part[j].sum + static_cast<float>(part[j].count) * shift;
      const float square = part[j].square + shift * (part[j].sum + sum);
      all.square += isinf(part[j].square) ? part[j].square : square;
      all.sum += sum;
      all.count += part[j].count;
    }
    return close(all);
  }
  __device__ static State combine(const State& a, const State& b) {
    const float count = a.count + b.count, share = __fdividef(1.0f, fmaxf(count, 1.0f));
    const float share_a = a.count * share, share_b = b.count * share;
    const float distance = (b.pivot - a.pivot) + (b.mean - a.mean), squares = a.square + b.square;
    const float between = distance * share_a * (distance * share_b);
    const float square = a.square * share_a + b.square * share_b + between;
    const bool is_empty = a.count == 0;
    return {is_empty ? b.pivot : a.pivot, is_empty ? b.mean : a.mean + distance * share_b,
            isinf(squares) ? squares : square, count};
  }
  __device__ static As finish(const State& state, Call call) {
    const double left = call.count - call.parameter;
    const float variance =
        state.square * (static_cast<float>(call.count) / static_cast<float>(left > 0 ? left : 0));
    return narrow<As>(kRoot ? sqrt(variance) : variance);
  }
};

template <typename In, typename As, bool kRoot, bool kShort = sizeof(As) == 2>
struct SpreadChoice {
  using Type = Spread<In, As, kRoot>;
};
template <typename In, typename As, bool kRoot>
struct SpreadChoice<In, As, kRoot, true> {
  using Type = ShortSpread<In, As, kRoot>;
};
template <typename In, typename As>
using Variance = typename SpreadChoice<In, As, false>::Type;
template <typename In, typename As>
using Deviation = typename SpreadChoice<In, As, true>::Type;

/// The variance of the elements that are numbers; NaN where their count is at most the correction.
template <typename In, typename As, bool kRoot>
struct NumberSpread : PassingNan<In, typename SpreadChoice<In, As, kRoot>::Type> {
  using Base = typename SpreadChoice<In, As, kRoot>::Type;
  __device__ static Real<As> finish(const typename Base::State& state, Call call) {
    const auto count = static_cast<double>(state.count);
    if (count == 0 || count <= call.parameter) {
      return narrow<Real<As>>(static_cast<Real<Accumulator<As>>>(nan("")));
    }
    return Base::finish(state, {count, call.parameter});
  }
};
template <typename In, typename As>
using NumberVariance = NumberSpread<In, As, false>;
template <typename In, typename As>
using NumberDeviation = NumberSpread<In, As, true>;

/// Shared by the norms: elements as absolute values. The order of NormAny is Call::parameter.
template <typename In, typename As, typename Value = Accumulator<As>>
struct Norm : Reducer<In, Real<As>, Real<Value>> {
  using Number = Real<Value>;
  __device__ static Value taken(In x) { return Taken<As, In, Value>::apply(x); }
  __device__ static Number begin() { return 0; }
  __device__ static Number combine(Number a, Number b) { return a + b; }
  __device__ static Real<As> finish(Number sum, Call) { return narrow<Real<As>>(sum); }
};
/// The number of elements that are not 0.
template <typename In, typename As>
struct NormZero : Norm<In, As> {
  using Number = typename Norm<In, As>::Number;
  template <typename Index>
  __device__ static void add(Number& part, In x, Index, const Call&) {
    part += is_nonzero(x) ? 1 : 0;
  }
};
template <typename In, typename As>
struct NormOne : Norm<In, As> {
  using Number = typename Norm<In, As>::Number;
  template <typename Index>
  __device__ static void add(Number& part, In x, Index, const Call&) {
    part += magnitude(Norm<In, As>::taken(x));
  }
};
template <typename In, typename As>
struct NormTwo : Norm<In, As> {
  using Number = typename Norm<In, As>::Number;
  template <typename Index>
  __device__ static void add(Number& part, In x, Index, const Call&) {
    part += squared(Norm<In, As>::taken(x));
  }
  __device__ static Real<As> finish(Number sum, Call) { return narrow<Real<As>>(sqrt(sum)); }
};
template <typename In, typename As>
struct NormAny : Norm<In, As> {
  using Number = typename Norm<In, As>::Number;
  template <typename Index>
  __device__ static void add(Number& part, In x, Index, const Call& call) {
    part += pow(magnitude(Norm<In, As>::taken(x)), static_cast<Number>(call.parameter));
  }
  __device__ static Real<As> finish(Number sum, Call call) {
    return narrow<Real<As>>(pow(sum, static_cast<Number>(1 / call.parameter)));
  }
};
template <typename In, typename As, typename Order, bool kLargest>
struct NormExtreme : Norm<In, As> {
  using Number = typename Norm<In, As>::Number;
  __device__ static Number begin() { return kLargest ? Number(0) : Ends<Number>::highest(); }
  template <typename Index>
  __device__ static void add(Number& part, In x, Index, const Call&) {
    part = Order()(part, magnitude(Norm<In, As>::taken(x)));
  }
  __device__ static Number combine(Number a, Number b) { return Order()(a, b); }
};
template <typename In, typename As>
using NormLargest = NormExtreme<In, As, Maximum, true>;
template <typename In, typename As>
using NormSmallest = NormExtreme<In, As, Minimum, false>;

template <typename Number>
struct ExponentialSum {
  Number largest;
  Number sum;  ///< of exp(x - largest)
};

/// log(sum(exp(x))) in one pass: the sum follows the largest element so far, so that nothing
/// overflows. (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.)
template <typename In, typename As, typename Number = Accumulator<As>>
struct LogSumExp : Reducer<In, As, ExponentialSum<Number>> {
  using State = ExponentialSum<Number>;
  __device__ static State begin() { return {Ends<Number>::lowest(), 0}; }
  template <typename Index>
  __device__ static void add(State& part, In x, Index, const Call&) {
    const Number value = Taken<As, In, Number>::apply(x);
    if (value == Ends<Number>::lowest()) return;
    if (value == part.largest) {
      part.sum += 1;
      return;
    }
    const Number above = value - part.largest, factor = exp(above > 0 ? -above : above);
    part.sum = above > 0 ? part.sum * factor + 1 : part.sum + factor;
    if (above > 0) part.largest = value;
  }
  __device__ static State combine(const State& a, const State& b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const State& top = a.largest > b.largest ? a : b;
    const State& low = a.largest > b.largest ? b : a;
    return {top.largest, top.sum + low.sum * exp(low.largest - top.largest)};
  }
  __device__ static As finish(const State& state, Call) {
    return narrow<As>(state.largest + log(state.sum));
  }
};

}  // namespace kernwright
