// Running operations, and what one warp scans of a row.
#pragma once

#include <kernwright/accumulate.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

// A running operation has Value, the type in which neighbours are combined, and Carry for long
// stretches: a wider type where there is one.

template <typename In, typename As>
struct RunningSum {
  using Input = In;
  using Output = As;
  using Value = Accumulator<As>;
  using Carry = Wide<Value>;
  __device__ static Value none() { return Value{}; }
  __device__ static Value take(In x) { return Taken<As, In, Value>::apply(x); }
  template <typename T>
  __device__ static T combine(T before, T next) {
    return plus(before, next);
  }
};

template <typename In, typename As>
struct RunningProduct : RunningSum<In, As> {
  using Value = Accumulator<As>;
  __device__ static Value none() { return OneValue<Value>::value(); }
  template <typename T>
  __device__ static T combine(T before, T next) {
    return times(before, next);
  }
};

template <typename In, typename As, typename Order, bool kLargest>
struct RunningExtreme {
  using Input = In;
  using Output = As;
  using Value = Word<As>;
  using Carry = Value;
  __device__ static Value none() {
    return kLargest ? Ends<Compute<As>>::lowest() : Ends<Compute<As>>::highest();
  }
  __device__ static Value take(In x) { return Taken<As, In, Value>::apply(x); }
  __device__ static Value combine(Value before, Value next) { return Order()(before, next); }
};
template <typename In, typename As>
using RunningMaximum = RunningExtreme<In, As, Maximum, true>;
template <typename In, typename As>
using RunningMinimum = RunningExtreme<In, As, Minimum, false>;

template <typename Op>
__device__ __forceinline__ typename Op::Carry to_carry(typename Op::Value value) {
  return Between<typename Op::Carry, typename Op::Value>::apply(value);
}

template <typename Op>
__device__ __forceinline__ typename Op::Output finish(typename Op::Carry value) {
  using Value = typename Op::Value;
  return narrow<typename Op::Output>(Between<Value, typename Op::Carry>::apply(value));
}

template <typename Op>
__device__ __forceinline__ void store_initial(char* to, long long stride) {
  *reinterpret_cast<typename Op::Output*>(to - stride) = finish<Op>(to_carry<Op>(Op::none()));
}

/// One warp's data on the chip: kSteps times 32 neighbouring packs.
template <typename Op, int kPack, int kSteps>
struct Chunk {
  using Value = typename Op::Value;
  static constexpr int kStep = 32 * kPack;
  static constexpr int kElements = kSteps * kStep;
  Value value[kSteps][kPack];

  /// The elements [begin, begin + kElements) of a row of `length`, those behind it as none.
  template <typename Index>
  __device__ void load(const char* row, long long stride, Index begin, Index length, int lane) {
    using Element = typename Op::Input;
    using Elements = Pack<Element, kPack>;
    const bool packed = stride == sizeof(Element) &&
                        reinterpret_cast<unsigned long long>(row) % sizeof(Elements) == 0;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const Index at = begin + k * kStep + lane * kPack;
      const char* const place = row + static_cast<long long>(at) * stride;
      if (packed && at + kPack <= length) {
        const Elements elements = *reinterpret_cast<const Elements*>(place);
#pragma unroll
        for (int j = 0; j < kPack; ++j) value[k][j] = Op::take(elements.value[j]);
        continue;
      }
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        value[k][j] = at + j < length
                          ? Op::take(*reinterpret_cast<const Element*>(place + j * stride))
                          : Op::none();
      }
    }
  }

  /// Each value becomes the combination of all values of the chunk up to it; the result combines
  /// all.
  __device__ Value scan(int lane) {
    Value before = Op::none();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int j = 1; j < kPack; ++j) value[k][j] = Op::combine(value[k][j - 1], value[k][j]);
      Value total = value[k][kPack - 1];
#pragma unroll
      for (int shift = 1; shift < 32; shift *= 2) {
        const Value lower = shuffle_up(total, shift);
        if (lane >= shift) total = Op::combine(lower, total);
      }
      const Value lower = shuffle_up(total, 1);
      const Value base = lane > 0 ? Op::combine(before, lower) : before;
#pragma unroll
      for (int j = 0; j < kPack; ++j) value[k][j] = Op::combine(base, value[k][j]);
      before = Op::combine(before, shuffle_from(total, 31));
    }
    return before;
  }

  /// Stores the values behind `before`, that of all elements before the chunk.
  template <typename Index>
  __device__ void store(char* row, long long stride, Index begin, Index length, int lane,
                        typename Op::Carry before) const {
    using Element = typename Op::Output;
    using Elements = Pack<Element, kPack>;
    const bool packed = stride == sizeof(Element) &&
                        reinterpret_cast<unsigned long long>(row) % sizeof(Elements) == 0;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const Index at = begin + k * kStep + lane * kPack;
      char* const place = row + static_cast<long long>(at) * stride;
      Elements elements;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        elements.value[j] = finish<Op>(Op::combine(before, to_carry<Op>(value[k][j])));
      }
      if (packed && at + kPack <= length) {
        *reinterpret_cast<Elements*>(place) = elements;
        continue;
      }
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (at + j < length) *reinterpret_cast<Element*>(place + j * stride) = elements.value[j];
      }
    }
  }
};

}  // namespace kernwright
