// Makes contents of every kind, and recognises results that were put together with them.
#include "tune/judge/fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/hash.h"
#include "base/small_float.h"
#include "worker/device/random_bytes.h"

namespace kernwright {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kBlock = 256;  // elements; many kernels have blocks of so many threads

/// The number as an element; of a complex type with the imaginary part 0. Integers wrap.
void encode(ScalarType dtype, double value, std::byte* to) {
  const std::size_t size = scalar_size(dtype);
  if (dtype == ScalarType::float64 || dtype == ScalarType::complex128) {
    std::memset(to, 0, size);
    std::memcpy(to, &value, sizeof value);
  } else if (dtype == ScalarType::float32 || dtype == ScalarType::complex64) {
    const auto single = static_cast<float>(value);
    std::memset(to, 0, size);
    std::memcpy(to, &single, sizeof single);
  } else if (is_floating(dtype)) {
    encode_small_float(value, dtype, to);
  } else {
    const auto whole = std::isfinite(value) ? static_cast<std::int64_t>(value) : 0;
    const std::int64_t bits = dtype == ScalarType::boolean ? std::int64_t{whole != 0} : whole;
    std::memcpy(to, &bits, size);
  }
}

Bytes repeated(const HostValue& given, double value) {
  Bytes bytes(given.bytes.size());
  const std::size_t size = scalar_size(given.dtype);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    encode(given.dtype, value, &bytes[at]);
  }
  return bytes;
}

Bytes tiled(std::span<const std::byte> from, std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t at = 0; at < bytes; at += from.size()) {
    std::memcpy(&made[at], from.data(), std::min(from.size(), bytes - at));
  }
  return made;
}

/// Where minima, maxima and divisors begin: the largest finite number, the lowest, and the smallest
/// normal float. Otherwise the element stays. Unsigned integers have the bits of signed ones.
void encode_bound(ScalarType dtype, std::uint64_t which, std::byte* to) {
  const std::size_t size = scalar_size(dtype);
  const bool is_lowest = which == 1;
  if (which > 1) {
    if (which == 2) encode(dtype, std::numeric_limits<float>::min(), to);
  } else if (is_floating(dtype) || is_complex(dtype)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    encode(dtype, is_lowest ? -kInfinity : kInfinity, to);
    std::uint64_t bits = 0;
    std::memcpy(&bits, to, std::min(size, sizeof bits));
    --bits;
    std::memcpy(to, &bits, std::min(size, sizeof bits));
  } else {
    std::memset(to, is_lowest ? 0 : 0xff, size);
    to[size - 1] = std::byte{is_lowest ? std::uint8_t{0x80} : std::uint8_t{0x7f}};
  }
}

/// Some of each kind: by chance for each element, or in turn for each `run` of them.
Bytes mixed(const HostValue& given, std::span<const std::byte> earlier, std::uint64_t seed,
            std::size_t run) {
  Bytes bytes(given.bytes.size());
  random_bytes(seed, 0, bytes);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kNumbers{0.0, -0.0, 1.0, -1.0, 2.0, 0.5, kNan, kInfinity, -kInfinity};
  constexpr std::array<unsigned char, 3> kPatterns{0xff, 0xcd, 0xcc};
  constexpr std::size_t kDenormal = kNumbers.size() + kPatterns.size();
  constexpr std::size_t kGiven = kDenormal + 1, kEarlier = kGiven + 1, kKinds = kEarlier + 2;
  const std::size_t size = scalar_size(given.dtype);
  const std::uint64_t kinds_seed = seed ^ 0x5bd1e995U;
  for (std::size_t i = 0; (i + 1) * size <= bytes.size(); ++i) {
    std::byte* const element = &bytes[i * size];
    const std::size_t kind =
        (run == 1 ? splitmix_at(kinds_seed, i) : splitmix_at(kinds_seed, 0) + i / run) % kKinds;
    if (kind < kNumbers.size()) {
      encode(given.dtype, kNumbers[kind], element);
    } else if (kind < kDenormal) {
      std::memset(element, kPatterns[kind - kNumbers.size()], size);
    } else if (kind == kDenormal) {
      std::memset(element, 0, size);
      *element = std::byte{1};
    } else if (kind == kGiven) {
      std::memcpy(element, &given.bytes[i * size], size);
    } else if (kind == kEarlier && (i + 1) * size <= earlier.size()) {
      std::memcpy(element, &earlier[i * size], size);
    } else {
      encode_bound(given.dtype, splitmix_at(~kinds_seed, i / run) % 4, element);
    }
  }
  return bytes;
}

bool is_unsigned(ScalarType dtype) {
  return dtype == ScalarType::boolean ||
         (!is_floating(dtype) && !is_complex(dtype) && !is_signed_integer(dtype));
}

/// Most steps are clear beside expected values; some are of a usual size.
double step_at(ScalarType dtype, double size, std::uint64_t index) {
  constexpr std::uint64_t kUsual = 8;
  double step = size;
  if (index % kUsual == kUsual - 1) {
    const bool is_whole = !is_floating(dtype) && !is_complex(dtype);
    const auto times = static_cast<double>(1 + index / kUsual % kUsual);
    step = std::copysign(std::min(std::abs(size), times * (is_whole ? 1 : 0.75)), size);
  }
  if (index % 2 != 0) step = -step;
  return is_unsigned(dtype) ? std::max(step, 0.0) : step;
}

/// A step of which the type can hold some.
double largest_step(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::boolean:
      return 1;
    case ScalarType::int8:
    case ScalarType::float8_e4m3fn:
      return 64;
    case ScalarType::uint8:
      return 128;
    case ScalarType::int16:
    case ScalarType::uint16:
    case ScalarType::float16:
    case ScalarType::float8_e5m2:
      return 16384;
    case ScalarType::int32:
    case ScalarType::uint32:
      return 1 << 30;
    default:
      return 1e30;
  }
}

/// Half a unit in the last place of the type's numbers near 1, some times.
double roundings(ScalarType dtype) {
  constexpr double kTimes = 16;
  switch (dtype) {
    case ScalarType::float32:
    case ScalarType::complex64:
      return kTimes * std::ldexp(1, -24);
    case ScalarType::float16:
      return kTimes * std::ldexp(1, -11);
    case ScalarType::bfloat16:
      return kTimes * std::ldexp(1, -8);
    case ScalarType::float8_e4m3fn:
    case ScalarType::float8_e5m2:
      return 0.25;
    case ScalarType::float64:
    case ScalarType::complex128:
      return kTimes * std::ldexp(1, -53);
    default:
      return 0;
  }
}

struct Element {
  double after, expected, given, before;
};

/// Each way of putting a result together with contents, as what it makes of an element.
double added(const Element& e) { return e.expected + e.before - e.given; }
double larger(const Element& e) { return std::max(e.expected, e.before); }
double smaller(const Element& e) { return std::min(e.expected, e.before); }
double product(const Element& e) { return e.expected * e.before; }
double left(const Element& e) { return e.expected == e.given ? e.before : e.expected; }
template <typename Join>
double joined(const Element& e, Join join) {
  return static_cast<double>(
      join(static_cast<std::int64_t>(e.expected), static_cast<std::int64_t>(e.before)));
}
double united(const Element& e) {
  return joined(e, [](std::int64_t a, std::int64_t b) { return a | b; });
}
double common(const Element& e) {
  return joined(e, [](std::int64_t a, std::int64_t b) { return a & b; });
}
double either(const Element& e) {
  return joined(e, [](std::int64_t a, std::int64_t b) { return a ^ b; });
}

/// The number as an integer type holds it after a sum.
double wrapped(ScalarType dtype, double value) {
  if (is_floating(dtype) || is_complex(dtype) || !std::isfinite(value)) return value;
  std::byte element[sizeof(std::int64_t)];
  encode(dtype, value, element);
  return element_as_double(dtype, element);
}

}  // namespace

std::vector<std::byte> steps(const HostValue& given, double size) {
  Bytes bytes(given.bytes.size());
  const std::size_t width = scalar_size(given.dtype);
  for (std::size_t i = 0; (i + 1) * width <= bytes.size(); ++i) {
    encode(given.dtype, step_at(given.dtype, size, i), &bytes[i * width]);
  }
  return bytes;
}

double step_size(const HostValue& expected, ScalarType dtype, double absolute) {
  const std::size_t width = scalar_size(expected.dtype);
  double most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(expected.elements()); ++i) {
    const double value = std::abs(element_as_double(expected.dtype, &expected.bytes[i * width]));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  const double clear = most <= absolute ? 1 : std::exp2(std::ceil(std::log2(most)) + 1);
  const bool is_whole = !is_floating(dtype) && !is_complex(dtype);
  return std::clamp(clear, is_whole ? 1.0 : 0.0, largest_step(dtype));
}

std::vector<std::byte> filled(Fill fill, const HostValue& given, std::span<const std::byte> earlier,
                              std::uint64_t seed) {
  Bytes bytes(given.bytes.size());
  switch (fill) {
    case Fill::zeros:
      return bytes;
    case Fill::all_bits:
      std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
      return bytes;
    case Fill::given:
      return given.bytes;
    case Fill::ones:
      return repeated(given, 1);
    case Fill::mixed:
      return mixed(given, earlier, seed, 1);
    case Fill::blocks:
      return mixed(given, earlier, seed, kBlock);
    case Fill::earlier:
      if (!earlier.empty()) return tiled(earlier, bytes.size());
      break;
    case Fill::random:
      break;
  }
  random_bytes(seed, 0, bytes);
  return bytes;
}

std::uint32_t addition_ways(const HostValue& after, const HostValue& expected,
                            const HostValue& given, double size, double relative, double absolute) {
  constexpr std::array kWays{added, larger, smaller, product, left, united, common, either};
  const bool has_bits = !is_floating(after.dtype) && !is_complex(after.dtype);
  std::uint32_t possible = has_bits ? 0xffU : 0x1fU;
  const std::size_t width = scalar_size(after.dtype), wide = scalar_size(expected.dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(after.elements()); ++i) {
    const Element e{element_as_double(after.dtype, &after.bytes[i * width]),
                    element_as_double(expected.dtype, &expected.bytes[i * wide]),
                    element_as_double(given.dtype, &given.bytes[i * width]),
                    step_at(after.dtype, size, i)};
    if (!std::isfinite(e.expected) || !std::isfinite(e.given)) continue;
    const auto is_near = [&](double number, double value) {
      const double largest = std::max({std::abs(value), std::abs(size), std::abs(e.given)});
      const double slack = absolute + relative * std::abs(e.expected) +
                           (relative + roundings(after.dtype)) * largest;
      return std::abs(number - wrapped(after.dtype, value)) <= slack;
    };
    const Element at_given{e.expected, e.expected, e.given, e.given};
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const bool explains_expected = is_near(e.expected, kWays[way](at_given));
      if (!explains_expected || !is_near(e.after, kWays[way](e))) possible &= ~(1U << way);
    }
  }
  return possible;
}

}  // namespace kernwright
