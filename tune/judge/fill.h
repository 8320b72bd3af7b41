// The contents of a kernel's outputs before a launch.
#pragma once

#include "tune/judge/host_value.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernwright {

/// What an array holds whose contents must not matter. A program's outputs hold zeros, what an
/// earlier call left there, or anything else.
enum class Fill : std::uint8_t {
  random,   ///< random bytes
  mixed,    ///< some of each: small numbers, NaN, infinities, patterns of bytes that mark memory
            ///< nobody wrote, a denormal number, the task's contents, earlier results, random bytes
  blocks,   ///< the same, with one kind for 256 elements: some kernels look at whole blocks
  zeros,    ///< bytes of 0
  earlier,  ///< the results of the launch before, over and over
  ones,     ///< the number 1
  all_bits,  ///< bytes of 0xff
  given,     ///< the task's contents
};
inline constexpr std::uint64_t kFills = 8;

/// The bytes for the array `given`. `earlier` may be empty: then random bytes stand in.
std::vector<std::byte> filled(Fill fill, const HostValue& given, std::span<const std::byte> earlier,
                              std::uint64_t seed);

/// Contents for addition_ways(): element by element `size` and -`size` in turn, and some small
/// numbers among them; of unsigned types 0 in place of negative ones.
std::vector<std::byte> steps(const HostValue& given, double size);

/// How a result is put together of the expected one and of what the array held before, steps(size):
/// one bit for each way. Added; the larger or smaller or product of both; united bit by bit; left
/// as it was where the expected value is the `given` one. A kernel that does so is right on the
/// task's own contents alone, and has reason to. A way counts only if it makes the expected value
/// of the given one, too: a kernel that leaves negative contents, and overwrites others, leaves
/// what a minimum would leave of steps, but no minimum of zeros is positive.
std::uint32_t addition_ways(const HostValue& after, const HostValue& expected,
                            const HostValue& given, double size, double relative, double absolute);

/// The size of steps that shows clearly beside these expected values, in an array of `dtype`.
/// Values up to `absolute`, the tolerance, are as good as zeros.
double step_size(const HostValue& expected, ScalarType dtype, double absolute = 0);

}  // namespace kernwright
