// Source places of instructions.
#include "sim/ptx/debug_lines.h"

#include "sim/ptx/lexer.h"
#include "sim/ptx/limits.h"
#include "sim/ptx/literal.h"

#include <array>

namespace kernwright::sim::ptx {

void collect_files(Module& module) {
  const std::string_view text = module.text;
  module.files.assign(1, {});
  constexpr std::string_view kDirective = ".file";
  for (std::size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at + kDirective.size())) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const std::size_t number = line.find_first_of("0123456789");
    const std::size_t open = line.find('"');
    const std::size_t close = line.find('"', open + 1);
    if (number == std::string_view::npos || open == std::string_view::npos || number > open ||
        close == std::string_view::npos) {
      continue;
    }
    const std::size_t number_end = line.find_first_not_of("0123456789", number);
    const auto index = parse_literal(line.substr(number, number_end - number));
    if (!index || index->bits == 0 || index->bits > kMaxFiles) continue;
    if (module.files.size() <= index->bits) module.files.resize(index->bits + 1);
    module.files[index->bits] = line.substr(open + 1, close - open - 1);
  }
}

bool is_toolkit_file(std::string_view path) noexcept {
  static constexpr std::array<std::string_view, 18> kParts{
      "/cccl/", "/cub/",  "/thrust/", "/cuda/std/",   "/cuda/__",   "/cooperative_groups",
      "cuda_",  "crt/",   "mma.h",    "_intrinsics.", "sm_",        "device_functions",
      "math_",  "curand", "nv/",      "vector_",      "libcudacxx", "builtin_types"};
  const std::size_t include = path.rfind("include/");
  const std::size_t slash = path.rfind('/');
  const bool in_include = include != std::string_view::npos;
  const bool bare = slash == std::string_view::npos;
  for (const std::string_view part : kParts) {
    const std::size_t at = path.find(part, in_include ? include : 0);
    if (at == std::string_view::npos) continue;
    if (in_include || part.front() == '/') return true;
    // A header handed over from memory has no folder: go by the start of its name.
    if (bare && at == 0 && (path.ends_with(".h") || path.ends_with(".hpp"))) return true;
  }
  return false;
}

LineTracker::LineTracker(const Module& module) {
  for (const std::string& file : module.files) toolkit_.push_back(is_toolkit_file(file));
}

std::size_t LineTracker::Hash::operator()(const Place& place) const noexcept {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.file)) << 44) ^
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.line)) << 16) ^
      static_cast<std::uint32_t>(place.column);
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 13);
}

bool LineTracker::is_user(const Place& place) const noexcept {
  const auto file = static_cast<std::size_t>(place.file);
  return place.line > 0 && file < toolkit_.size() && !toolkit_[file];
}

void LineTracker::move_to(const Place& place) {
  if (place.line > 0) current_ = {place.file, place.line};
}

void LineTracker::move_to_inlined(const Place& place, const Place& caller) {
  if (!(place == caller)) callers_[place] = caller;
  Place at = place;
  for (int depth = 0; depth < kMaxInlineDepth && !is_user(at); ++depth) {
    const auto outer = callers_.find(at);
    if (outer == callers_.end()) break;
    at = outer->second;
  }
  move_to(is_user(at) ? at : place);
}

}  // namespace kernwright::sim::ptx
