// Short ways to parse PTX in tests.
#pragma once

#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx::testing {

inline constexpr std::string_view kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

inline std::unique_ptr<Module> parse_module(std::string_view text) {
  return parse(std::string(kHeader) + std::string(text));
}

/// A kernel whose body is `text`; the header takes 3 lines, so the body begins on PTX line 5.
inline std::unique_ptr<Module> parse_body(std::string_view text) {
  return parse_module(".entry k(.param .u64 k_p)\n{\n" + std::string(text) + "\n}\n");
}

/// Registers of every type for one-instruction tests.
inline constexpr std::string_view kRegisters =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; "
    ".reg .f64 %d<9>; .reg .s32 %s<9>; .reg .u16 %u<9>;\n";

inline std::unique_ptr<Module> parse_instruction(std::string_view text) {
  return parse_body(std::string(kRegisters) + std::string(text));
}

/// The message of the error that `parse_one` throws, checked for its line.
template <typename Parse>
std::string error_of(Parse&& parse_one, int line = 0) {
  try {
    parse_one();
  } catch (const PtxError& error) {
    if (line != 0) CHECK(error.ptx_line == line);
    return error.what();
  }
  FAIL("no PtxError");
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The folder tests/ of the sources; __FILE__ may be relative to the folder of the build.
std::filesystem::path tests_folder();

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The folder of the PTX texts of tests/sim/ptx.tar.xz.
std::filesystem::path ptx_folder();
/// The PTX texts, in order of their names.
std::vector<std::filesystem::path> corpus();

}  // namespace kernwright::sim::ptx::testing
