// Spelling and width of the special registers.
#include "sim/ptx/ast.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

namespace kernwright::sim::ptx {
namespace {

// Indexed by SpecialRegister.
constexpr std::string_view kNames[] = {
    "",
#define KW_SPECIAL(name) "%" #name,
#define KW_AXES(name) "%" #name ".x", "%" #name ".y", "%" #name ".z",
#include "sim/ptx/special_registers.inc"
#undef KW_SPECIAL
#undef KW_AXES
};

/// Reads `prefix`, a number up to `last`, `suffix`.
bool is_numbered(std::string_view text, std::string_view prefix, int last,
                 std::string_view suffix) {
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return false;
  text.remove_prefix(prefix.size());
  if (text.size() <= suffix.size()) return false;
  text.remove_suffix(suffix.size());
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && number >= 0 &&
         number <= last && std::to_string(number) == text;
}

/// Registers that always read as zero here: performance counters, registers set only by the driver,
/// and the fourth components.
SpecialRegister zero_register(std::string_view text) {
  if (is_numbered(text, "%pm", 7, "_64")) return SpecialRegister::zero64;
  bool zero = is_numbered(text, "%pm", 7, "") || is_numbered(text, "%envreg", 31, "");
  if (text.ends_with(".w")) {
    const std::string first = std::string(text.substr(0, text.size() - 1)) + "x";
    zero = std::ranges::find(kNames, first) != std::end(kNames);
  }
  return zero ? SpecialRegister::zero : SpecialRegister::none;
}

}  // namespace

SpecialRegister special_from_name(std::string_view text) noexcept {
  for (std::size_t i = 1; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return static_cast<SpecialRegister>(i);
  }
  return zero_register(text);
}

int special_bits(SpecialRegister special) noexcept {
  switch (special) {
    case SpecialRegister::gridid:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::current_graph_exec:
    case SpecialRegister::zero64: return 64;
    case SpecialRegister::is_explicit_cluster: return 1;
    default: return 32;
  }
}

}  // namespace kernwright::sim::ptx
