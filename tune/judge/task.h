// A task: a kernel's call, its inputs and its expected results.
#pragma once

#include "core/launch/launch_config.h"
#include "jit/source/program_options.h"
#include "tune/judge/comparison.h"
#include "tune/judge/drawn_cases.h"
#include "tune/judge/host_value.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernwright {

/// How one case is launched.
struct LaunchShape {
  std::optional<Dim3> grid{};  ///< nothing: a thread for each element of the largest written array;
                               ///< with a 0 in it: no launch
  Dim3 block{256, 1, 1};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  Dim3 cluster{0, 0, 0};           ///< 0: no cluster
  bool cooperative = false;
};

/// One value for each parameter of the kernel, in order.
using HostValues = std::vector<HostValue>;
/// The expected contents of an argument; nothing: unchanged.
using Expected = std::vector<std::optional<HostValue>>;

/// A value. The judging thread calls its functions, one at a time for each judgement, in this
/// process and never in the kernel's. Their exceptions end the judgement and come out of it.
struct Task {
  std::string entry;      ///< the kernel's name, as in ObjectCode::kernel()
  std::string signature;  ///< its parameters in C++: "const float* x, float* y, int n"; empty: any
  /// Options of the compile. Of all headers, a text may include only these, CUDA's and the
  /// library's.
  ProgramOptions options{};
  /// The same seed and number (0 ... cases - 1) give the same values.
  std::function<HostValues(std::uint64_t seed, int number)> inputs;
  /// In float64 if possible.
  std::function<Expected(const HostValues&)> reference;
  std::function<LaunchShape(const HostValues&)> launch{};  ///< empty: LaunchShape{}
  std::optional<double> rtol{};                            ///< empty: default_tolerance()
  std::optional<double> atol{};
  /// The least work of any implementation, for the floor of its time: bytes moved to and from
  /// memory, floating-point operations. Empty: none.
  std::function<double(const HostValues&)> bytes{};
  std::function<double(const HostValues&)> flops{};
  int cases = 8;
  /// Arguments that are scratch memory of the kernel: they hold anything before a launch, and are
  /// not compared. The reference returns nothing for them.
  std::set<std::size_t> workspace{};
  /// Arguments whose contents kernels may rely on, though the reference does not: counters at zero,
  /// distances not known yet.
  std::set<std::size_t> inout{};
  std::optional<int> timed_case{};  ///< empty: the one with the most bytes
  /// Exceptions: "malloc", "printf", "clock" (in the text), "nan" (in expected values of finite
  /// inputs) are refused otherwise.
  std::set<std::string> allow{};
  /// Keeps cases between judgements by copies of this task. Null: each judgement draws anew.
  std::shared_ptr<DrawnCases> drawn{};

  /// Throws InvalidArgument for missing, negative or unknown values.
  void check() const;
  /// The tolerance for results of this type.
  Tolerance tolerance_for(ScalarType dtype) const;
};

/// A seed of 31 bits, number `index` of the sequence from `seed`: for generators limited to 31
/// bits.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t index) noexcept;

}  // namespace kernwright
