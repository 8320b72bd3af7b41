// The readers of untrusted bytes, each behind one function that a fuzzer can call.
#pragma once

#include <array>
#include <string_view>

namespace kernwright::fuzz {

/// Each takes any bytes. A reader may refuse them with one of its own exceptions, which these
/// functions swallow; everything else (another exception, a crash, what was read not surviving a
/// round trip) gets out and is a finding.
void ptx(std::string_view bytes);           ///< lexer, parser and verifier
void object_code(std::string_view bytes);   ///< ObjectCode::deserialize
void mangled_type(std::string_view bytes);  ///< mangled names and what the probes read from them
void cache_entry(std::string_view bytes);   ///< entries of the disk cache

struct Target {
  const char* name;
  void (*run)(std::string_view bytes);
};
inline constexpr std::array kTargets{Target{"ptx", ptx}, Target{"object_code", object_code},
                                     Target{"mangled_type", mangled_type},
                                     Target{"cache_entry", cache_entry}};

}  // namespace kernwright::fuzz
