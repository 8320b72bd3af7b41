// A family of kernels: one text and its instances.
#pragma once

#include "base/scalar_type.h"
#include "core/kernel.h"
#include "core/launch/launch_config.h"
#include "jit/program.h"
#include "kernels_src/instance_table.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kernwright::kernels {

/// The instances of the templates of one text, by number, compiled and loaded when first launched.
/// Make one for good: `static const auto& family = *new Family(...)`, as modules outlive main().
/// Thread-safe.
class Family {
 public:
  /// `name` names the text in messages: "softmax.cu". Headers are the files of include/, as
  /// <kernwright/...>. Throws InvalidArgument as Program does. A text with parts of a user is
  /// `ProgramScope::named`.
  Family(std::string name, std::string_view text, ProgramScope scope = ProgramScope::library);
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// The kernel named by `expression()`, as "softmax<Float32, 4>". The expression is asked for a
  /// new `key` only: equal keys must mean equal names. See InstanceKey. It may give several names,
  /// for kernels launched by a call one after the other: one compile makes them all. The first is
  /// the name for `key`.
  template <typename Expression>
  const LazyKernel& instance(std::uint64_t key, const Expression& expression) const {
    if (const LazyKernel* known = instances_.find(key)) [[likely]]
      return *known;
    if constexpr (std::is_convertible_v<decltype(expression()), std::string>) {
      return add(key, {expression()});
    } else {
      return add(key, expression());
    }
  }
  const Program& program() const noexcept { return program_; }

 private:
  const LazyKernel& add(std::uint64_t key, std::vector<std::string> names) const;

  Program program_;
  mutable InstanceTable instances_;
};

/// Packs choices into the number for Family::instance(), each into separate bits. A value that
/// needs more bits, or more than 64 bits in all, would share the number with another kernel: add()
/// throws std::logic_error.
class InstanceKey {
 public:
  template <typename Value>
  constexpr InstanceKey& add(Value value, int bits) {
    const auto number = static_cast<std::uint64_t>(value);
    used_ += bits;
    if (number >> bits != 0 || used_ > 64) [[unlikely]]
      refuse(number, bits);
    number_ = number_ << bits | number;
    return *this;
  }
  constexpr InstanceKey& type(ScalarType value) { return add(value, 5); }
  constexpr operator std::uint64_t() const noexcept { return number_; }

 private:
  [[noreturn]] void refuse(std::uint64_t number, int bits) const;

  std::uint64_t number_ = 0;
  int used_ = 0;
};

/// The name that elements.cuh gives the type: "Float32".
const char* device_type(ScalarType type) noexcept;

/// Whether the device has programmatic dependent launch (PDL). Only kernels that call
/// pdl_launch_then_wait() or pdl_wait_then_launch() of overlap.cuh may be launched with PDL.
bool overlaps_launches(const Device& device);

/// Whether a short kernel of `blocks` blocks that calls pdl_wait_then_launch() should use PDL.
/// A kernel of many waves hides its prologue anyway.
bool overlaps_launches(const Device& device, std::int64_t blocks);

/// The same for kernels whose blocks read much: fewer blocks than multiprocessors. More would be
/// spread unevenly over the multiprocessors that the kernel ahead leaves. The kernels call
/// pdl_wait_then_launch_small().
bool overlaps_small_launches(const Device& device, std::int64_t blocks);

/// Launches with the addresses of the kernel's parameters, as Kernel::launch() does.
void launch_arguments(const Kernel& kernel, const LaunchConfig& config,
                      std::span<void* const> arguments);

/// Launches with the values as the kernel's parameters: their types must be the parameters' own.
/// Throws as Kernel::launch() does.
template <typename... Values>
void launch(const Kernel& kernel, const LaunchConfig& config, const Values&... values) {
  const std::array<void*, sizeof...(Values)> arguments = {
      const_cast<void*>(static_cast<const void*>(&values))...};
  launch_arguments(kernel, config, arguments);
}

}  // namespace kernwright::kernels
