// Checks compile options and turns them into NVRTC's.
#include "jit/source/program_options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"
#include "jit/source/extra_options.h"

namespace kernwright {
namespace {

constexpr std::size_t kMaxOptions = 1000;
constexpr std::size_t kMaxHeaders = 4000;
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 20;
constexpr int kMaxRegisters = 255;

/// Refuses a NUL, and a line break where `one_line`: the option behind it would be another one.
void check_text(const std::string& what, const std::string& text, bool one_line) {
  const std::string_view forbidden =
      one_line ? std::string_view("\0\n\r", 3) : std::string_view("\0", 1);
  const auto at = text.find_first_of(forbidden);
  if (at == std::string::npos) return;
  throw InvalidArgument(format("{} has a {} at offset {}", printable(what),
                               text[at] == '\0' ? "NUL" : "line break", at));
}

/// The compiler itself reports a standard unknown to it.
void check_std(const std::string& std) {
  constexpr std::array kKnown{"c++11", "c++14", "c++17", "c++20", "c++23", "c++26"};
  if (std::find(kKnown.begin(), kKnown.end(), std) != kKnown.end()) return;
  throw InvalidArgument(format(
      "option std=\"{}\" is unknown: use c++11, c++14, c++17, c++20, or c++23 where NVRTC knows it",
      printable(std)));
}

bool is_identifier(std::string_view name) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), word);
}

void check_define(const std::string& name, const std::string& value) {
  check_text(format("the value of define {}", name), value, true);
  const auto parenthesis = name.find('(');  // "MAX(a,b)" defines a macro with parameters
  if (is_identifier(std::string_view(name).substr(0, parenthesis)) &&
      name.find_first_of("=\n\r") == std::string::npos &&
      (parenthesis == std::string::npos || name.back() == ')')) {
    return;
  }
  throw InvalidArgument(format("define \"{}\" is no macro name", printable(name)));
}

void check_header_name(const std::string& name) {
  check_text(format("the name of header \"{}\"", name), name, true);
  const auto refuse = [&](const char* why) {
    throw InvalidArgument(format("header name \"{}\" {}", printable(name), why));
  };
  if (name.empty()) refuse("is empty");
  if (name.front() == '/' || name.front() == '\\' || name.find(':') != std::string::npos) {
    refuse("is an absolute path: use the name that the source includes");
  }
  std::string_view rest = name;
  while (!rest.empty()) {
    const auto end = rest.find_first_of("/\\");
    if (rest.substr(0, end) == "..") refuse("contains \"..\"");
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
}

/// Two spellings of one name would be two headers to one spelling of an #include.
void check_spellings(const std::map<std::string, std::string>& headers) {
  std::map<std::string, std::string> known;
  for (const auto& [name, text] : headers) {
    const std::string normal = std::filesystem::path(name).lexically_normal().string();
    const auto [place, is_new] = known.emplace(normal, name);
    if (is_new) continue;
    throw InvalidArgument(format(
        "headers \"{}\" and \"{}\" are two spellings of one name: give one", place->second, name));
  }
}

void check_headers(const ProgramOptions& options) {
  if (options.headers.size() > kMaxHeaders) {
    throw InvalidArgument(
        format("{} headers are given; the limit is {}", options.headers.size(), kMaxHeaders));
  }
  std::size_t bytes = 0;
  for (const auto& [name, text] : options.headers) {
    check_header_name(name);
    check_text(format("the text of header \"{}\"", name), text, false);
    bytes += text.size();
  }
  if (bytes > kMaxHeaderBytes) {
    throw InvalidArgument(
        format("the headers have {} bytes; the limit is {}", bytes, kMaxHeaderBytes));
  }
}

void check_numbers(const ProgramOptions& options) {
  if (options.max_registers &&
      (*options.max_registers < 1 || *options.max_registers > kMaxRegisters)) {
    throw InvalidArgument(format("option max_registers={} is outside 1 ... {}",
                                 *options.max_registers, kMaxRegisters));
  }
  if (options.opt_level && (*options.opt_level < 0 || *options.opt_level > 3)) {
    throw InvalidArgument(format("option opt_level={} is outside 0 ... 3", *options.opt_level));
  }
  if (options.device_debug && options.opt_level.value_or(0) > 0) {
    throw InvalidArgument(
        format("options device_debug and opt_level={} exclude each other", *options.opt_level));
  }
  if (options.timeout && options.timeout->count() <= 0) {
    throw InvalidArgument(format("option timeout={} ms is not positive", options.timeout->count()));
  }
}

}  // namespace

void validate(const ProgramOptions& options) {
  check_text("option arch", options.arch, true);
  check_std(options.std);
  const std::size_t count =
      options.defines.size() + options.include_dirs.size() + options.extra.size();
  if (count > kMaxOptions) {
    throw InvalidArgument(format("{} options are given; the limit is {}", count, kMaxOptions));
  }
  for (const auto& [name, value] : options.defines) {
    check_text(format("define \"{}\"", name), name, true);
    check_define(name, value);
  }
  for (const std::string& folder : options.include_dirs) {
    check_text(format("include folder \"{}\"", folder), folder, true);
    if (folder.empty()) throw InvalidArgument("an include folder is the empty text");
  }
  for (const std::string& option : options.extra) {
    check_text(format("option \"{}\"", option), option, true);
    check_extra_option(option);
  }
  check_headers(options);
  check_spellings(options.headers);
  check_numbers(options);
}

ProgramOptions with_absolute_folders(ProgramOptions options) {
  for (std::string& folder : options.include_dirs) {
    if (folder.empty() || folder.front() == '/') continue;
    std::error_code error;
    const auto current = std::filesystem::current_path(error);
    if (error) {
      throw InvalidArgument(
          format("include folder \"{}\" is relative to the current folder, which {}", folder,
                 "cannot be found: " + error.message()));
    }
    folder = (current / folder).string();
  }
  return options;
}

void check_include_dirs(const ProgramOptions& options) {
  for (const std::string& folder : options.include_dirs) {
    std::error_code error;
    const auto status = std::filesystem::status(folder, error);
    if (std::filesystem::is_directory(status)) continue;
    throw InvalidArgument(
        format("include folder \"{}\" {}", folder,
               std::filesystem::exists(status) ? "is no folder" : "does not exist"));
  }
}

namespace {

/// NVRTC drops blanks at the end of an option.
std::string include_option(const std::string& folder) {
  const bool ends_blank =
      !folder.empty() && std::string_view(" \t\f\v").find(folder.back()) != std::string_view::npos;
  return "--include-path=" + folder + (ends_blank ? "/" : "");
}

}  // namespace

std::vector<std::string> to_nvrtc_options(const ProgramOptions& options, const std::string& arch,
                                          const std::vector<std::string>& header_folders) {
  std::vector<std::string> result{"--gpu-architecture=" + arch, "--std=" + options.std};
  for (const auto& [name, value] : options.defines) {
    result.push_back("--define-macro=" + name + (value.empty() ? "" : "=" + value));
  }
  for (const std::string& folder : options.include_dirs) {
    result.push_back(include_option(folder));
  }
  for (const std::string& folder : header_folders) result.push_back(include_option(folder));
  if (options.fast_math) result.push_back("--use_fast_math");
  if (options.max_registers) {
    result.push_back("--maxrregcount=" + std::to_string(*options.max_registers));
  }
  if (options.device_debug) result.push_back("--device-debug");
  if (options.lineinfo && !options.device_debug) result.push_back("--generate-line-info");
  if (options.minimal == Tristate::on) result.push_back("--minimal");
  if (options.opt_level) {
    result.push_back("--ptxas-options=-O" + std::to_string(*options.opt_level));
  }
  result.insert(result.end(), options.extra.begin(), options.extra.end());
  return result;
}

}  // namespace kernwright
