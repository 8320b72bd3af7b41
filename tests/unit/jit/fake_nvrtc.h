// An NVRTC with planned answers: results, log, names.
#pragma once

#include "driver/nvrtc_loader.h"

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kernwright::testing {

/// One per process, since the table's functions have no place for an instance; reset() makes it
/// new.
class FakeNvrtc {
 public:
  static FakeNvrtc& get();
  /// The plan as new, and a library over the table: version 13.1, architectures 80, 90, 120.
  LoadedNvrtc reset();

  // The plan.
  nvrtcResult create_result = NVRTC_SUCCESS;
  nvrtcResult compile_result = NVRTC_SUCCESS;
  std::string log;
  std::set<int> failing;  ///< these compiles, counted from 0, fail with any compile_result
  std::string ptx = ".visible .entry k(){ ret; }\n";
  std::string cubin =
      "\x7f"
      "ELF cubin";
  std::map<std::string, std::string> lowered;  ///< others are lowered to themselves
  std::chrono::milliseconds compile_time{0};   ///< asks the callback meanwhile, if there is one
  bool can_cancel = true;

  // The calls so far.
  std::atomic<int> created = 0, destroyed = 0, compiled = 0;
  std::vector<std::string> options;
  std::string source, name;
  std::vector<std::string> headers;
};

}  // namespace kernwright::testing
