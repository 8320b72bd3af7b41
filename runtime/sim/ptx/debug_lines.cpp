// Source places of instructions.
#include "sim/ptx/debug_lines.h"

#include "sim/ptx/parse/lexer.h"
#include "sim/ptx/parse/limits.h"
#include "sim/ptx/parse/literal.h"

#include <algorithm>
#include <array>

namespace kernwright::sim::ptx {

namespace {

/// The quote at the end of the string begun at `open`: none behind a backslash counts.
std::size_t find_string_end(std::string_view line, std::size_t open) {
  if (open == std::string_view::npos) return open;
  for (std::size_t i = open + 1; i < line.size(); ++i) {
    if (line[i] == '"') return i;
    if (line[i] == '\\') ++i;
  }
  return std::string_view::npos;
}

/// Bytes of a string literal: NVRTC writes all non-ASCII ones in octal.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      result += text[i];
      continue;
    }
    unsigned value = 0;
    std::size_t digits = 0;
    while (digits < 3 && i + 1 + digits < text.size()) {
      const char c = text[i + 1 + digits];
      if (c < '0' || c > '7') break;
      value = value * 8 + static_cast<unsigned>(c - '0');
      ++digits;
    }
    if (digits > 0) {
      result += static_cast<char>(value & 0xff);
      i += digits;
    } else {
      ++i;
      result += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
  }
  return result;
}

}  // namespace

void collect_files(Module& module) {
  const std::string_view text = module.text;
  module.files.assign(1, {});
  constexpr std::string_view kDirective = ".file";
  for (std::size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at + kDirective.size())) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const std::size_t number = line.find_first_of("0123456789");
    const std::size_t open = line.find('"');
    const std::size_t close = find_string_end(line, open);
    if (number == std::string_view::npos || open == std::string_view::npos || number > open ||
        close == std::string_view::npos) {
      continue;
    }
    const std::size_t number_end = line.find_first_not_of("0123456789", number);
    const auto index = parse_literal(line.substr(number, number_end - number));
    if (!index || index->bits == 0 || index->bits > kMaxFiles) continue;
    if (module.files.size() <= index->bits) module.files.resize(index->bits + 1);
    module.files[index->bits] = unescaped(line.substr(open + 1, close - open - 1));
  }
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "cuda-13.0" with the stem "cuda-".
bool is_numbered(std::string_view folder, std::string_view stem) {
  return folder.starts_with(stem) && folder.size() > stem.size() && is_digit(folder[stem.size()]);
}

/// "headers-13.5": a folder of NVRTC's unpacked headers.
bool is_bundle(std::string_view folder) { return is_numbered(folder, "headers-"); }

/// Whether it is in CUDA's C++ library or a toolkit's own header folders, below an include folder.
bool is_library(std::string_view rest) {
  for (const std::string_view folder :
       {"cccl/", "cub/", "thrust/", "cuda/std/", "cuda/__", "cuda/experimental/", "nv/detail/",
        "cooperative_groups/", "crt/"}) {
    if (rest.starts_with(folder)) return true;
  }
  if (rest == "nv/target") return true;
  // <cuda/barrier>: headers of the library have no suffix, a project's own have.
  constexpr std::string_view kPublic = "cuda/";
  return rest.starts_with(kPublic) &&
         rest.find_first_of("./", kPublic.size()) == std::string_view::npos;
}

/// Whatever a pip package of NVIDIA's has: "site-packages/nvidia/cuda_runtime/include/...".
bool is_packaged(std::string_view path) {
  constexpr std::string_view kPackages = "-packages/nvidia/";
  const std::size_t packages = path.find(kPackages);
  if (packages == std::string_view::npos) return false;
  const std::size_t package_end = path.find('/', packages + kPackages.size());
  return package_end != std::string_view::npos && path.substr(package_end).starts_with("/include/");
}

template <std::size_t N>
bool is_any(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// By its whole name: users do not give such names to their own files.
bool is_device_header(std::string_view name) {
  static constexpr std::array<std::string_view, 26> kNames{"cooperative_groups.h",
                                                           "cuComplex.h",
                                                           "cuda_awbarrier.h",
                                                           "cuda_awbarrier_helpers.h",
                                                           "cuda_awbarrier_primitives.h",
                                                           "cuda_bf16.h",
                                                           "cuda_bf16.hpp",
                                                           "cuda_device_runtime_api.h",
                                                           "cuda_fp16.h",
                                                           "cuda_fp16.hpp",
                                                           "cuda_fp4.h",
                                                           "cuda_fp4.hpp",
                                                           "cuda_fp6.h",
                                                           "cuda_fp6.hpp",
                                                           "cuda_fp8.h",
                                                           "cuda_fp8.hpp",
                                                           "cuda_pipeline.h",
                                                           "cuda_pipeline_helpers.h",
                                                           "cuda_pipeline_primitives.h",
                                                           "cuda_runtime.h",
                                                           "cuda_tf32.h",
                                                           "curand_kernel.h",
                                                           "device_atomic_functions.h",
                                                           "device_atomic_functions.hpp",
                                                           "surface_indirect_functions.h",
                                                           "texture_indirect_functions.h"};
  if (is_any(kNames, name)) return true;
  if (name.find('/') != std::string_view::npos) return false;
  if (name.starts_with("curand_") && name.ends_with(".h")) return true;
  // "sm_60_atomic_functions.hpp"
  if (!is_numbered(name, "sm_")) return false;
  return name.find("_intrinsics.h") != std::string_view::npos ||
         name.find("_atomic_functions.h") != std::string_view::npos;
}

/// Names possible for a project's own header too: a toolkit's only in a folder of one.
bool is_plain_header(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames{
      "builtin_types.h",           "common_functions.h",   "cudart_platform.h",
      "device_double_functions.h", "device_functions.h",   "device_types.h",
      "math_constants.h",          "math_functions.h",     "mma.h",
      "vector_functions.h",        "vector_functions.hpp", "vector_types.h"};
  return is_any(kNames, name);
}

}  // namespace

bool is_toolkit_file(std::string_view path) noexcept {
  // NVRTC's own built-in headers, as if in the current folder.
  if (path.ends_with("__nv_nvrtc_builtin_header.h")) return true;
  if (path.find('/') == std::string_view::npos) return is_device_header(path);
  if (is_packaged(path)) return true;
  // A checkout of the C++ library.
  for (const std::string_view folder : {"/cub/cub/", "/thrust/thrust/", "/libcudacxx/include/"}) {
    if (path.find(folder) != std::string_view::npos) return true;
  }
  bool is_toolkit = false;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = path.find('/', begin);
    if (end == std::string_view::npos) break;
    const std::string_view folder = path.substr(begin, end - begin);
    const std::string_view rest = path.substr(end + 1);
    if (is_bundle(folder) && (is_library(rest) || is_device_header(rest) || is_plain_header(rest)))
      return true;
    if ((folder == "include" || folder == "cccl") &&
        (is_library(rest) || is_device_header(rest) || (is_toolkit && is_plain_header(rest))))
      return true;
    is_toolkit |= folder == "targets" || folder == "cuda" || is_numbered(folder, "cuda-");
    begin = end + 1;
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
