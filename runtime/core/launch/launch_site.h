// The place of a launch in the caller's program, resolved only when a message needs it.
#pragma once

#include <cstdint>
#include <string>

namespace kernwright {

/// A line of the caller's program.
struct SourceLocation {
  std::string file;  ///< empty when unknown
  int line = 0;      ///< counted from 1; 0 when unknown
};

/// A place in the caller's program as plain words: a launch stores it without allocating.
/// `resolve(origin, position)` turns it into text later, possibly long after the launch and on
/// another thread. So the target of `origin` must live as long as the process (a string literal, an
/// interned code object that is never released). The resolver is called without any lock of this
/// library held, so it may take an interpreter's lock. Its exceptions are ignored; the place then
/// counts as unknown.
struct LaunchSite {
  using Resolver = SourceLocation (*)(const void* origin, std::uint64_t position);
  const void* origin = nullptr;
  std::uint64_t position = 0;
  Resolver resolve = nullptr;  ///< null: no place known

  /// The C++ line that calls this; `file` must be a string literal. Files of this project are told
  /// by their path in it: "engine/rows.cpp:40".
  // NOTE: clang 14 has no std::source_location; both compilers have what it is made of.
  static LaunchSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept;
  /// "app.py:12", or empty when unknown. Never throws.
  std::string to_string() const noexcept;
};

}  // namespace kernwright
