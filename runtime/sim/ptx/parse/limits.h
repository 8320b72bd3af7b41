// Upper bounds, so that a hostile or broken module cannot exhaust the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernwright::sim::ptx {

inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
inline constexpr std::uint64_t kMaxRegisters = 1u << 20;        ///< of one function
inline constexpr std::uint64_t kMaxModuleRegisters = 1u << 22;  ///< of all functions
inline constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kMaxBodyVariableBytes = std::uint64_t{1}
                                                       << 30;  ///< shared, local, param
inline constexpr std::uint64_t kMaxPaddedValues = 1u
                                                  << 20;  ///< zeros that nested initialisers imply
inline constexpr std::uint32_t kMaxAlignment = 1u << 16;
inline constexpr int kMaxScopes = 64;
inline constexpr int kMaxExpressionDepth = 32;
inline constexpr std::size_t kMaxExtents = 16;
inline constexpr int kMaxInlineDepth = 64;
inline constexpr int kMaxModifiers = 24;
inline constexpr std::uint64_t kMaxFiles = 65536;

}  // namespace kernwright::sim::ptx
