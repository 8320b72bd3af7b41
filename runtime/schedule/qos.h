// The classes of service of tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernwright::schedule {

/// A task of a class goes before those of the classes behind it. best_effort fills what is left.
enum class Qos : std::uint8_t { guaranteed, burstable, best_effort };

inline constexpr std::size_t kClasses = 3;
inline constexpr Qos kAllClasses[kClasses] = {Qos::guaranteed, Qos::burstable, Qos::best_effort};

constexpr std::size_t ordinal(Qos qos) noexcept { return static_cast<std::size_t>(qos); }

const char* qos_name(Qos qos) noexcept;  ///< "guaranteed", "burstable", "best_effort"
/// Throws InvalidArgument for any other name, and lists the three.
Qos qos_named(std::string_view name);

}  // namespace kernwright::schedule
