// Source places: .file and .loc directives, with the call chain of inlined code.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace kernwright::sim::ptx {

/// Fills `module.files` from the .file directives anywhere in its text (NVRTC writes them last). It
/// ignores malformed ones: the parser reports them.
void collect_files(Module& module);

/// True for a header of CUDA: a place there is of no use to the kernel's author. Decides by the
/// folders of such headers and by their whole names, not by words possible in a project's own
/// names.
bool is_toolkit_file(std::string_view path) noexcept;

/// Follows .loc directives. For inlined code it answers with the innermost place outside the
/// toolkit's headers, or the innermost of all when there is no such place.
class LineTracker {
 public:
  explicit LineTracker(const Module& module);

  struct Place {
    std::int32_t file = 0, line = 0, column = 0;
    bool operator==(const Place&) const = default;
  };
  /// A .loc without inlined_at.
  void move_to(const Place& place);
  /// A .loc with inlined_at `caller`.
  void move_to_inlined(const Place& place, const Place& caller);
  SourceLine current() const noexcept { return current_; }
  void reset() noexcept { current_ = {}; }

 private:
  struct Hash {
    std::size_t operator()(const Place& place) const noexcept;
  };
  bool is_user(const Place& place) const noexcept;

  std::vector<bool> toolkit_;
  std::unordered_map<Place, Place, Hash> callers_;
  SourceLine current_;
};

}  // namespace kernwright::sim::ptx
