// The refused options, with reasons.
#include "jit/source/extra_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

struct Refusal {
  std::string_view option;  ///< with "*": also everything that begins so
  std::string_view reason;
};

constexpr std::string_view kWrites = "writes files";
constexpr std::string_view kNoCode = "leaves no code that could be launched";

constexpr std::array kRefused{
    Refusal{"-arch", "is set by the field `arch`"},
    Refusal{"--gpu-architecture", "is set by the field `arch`"},
    Refusal{"-std", "is set by the field `std`"},
    Refusal{"--std", "is set by the field `std`"},
    Refusal{"-I*", "is set by the field `include_dirs`"},
    Refusal{"--include-path", "is set by the field `include_dirs`"},
    Refusal{"-minimal", "is set by the field `minimal`"},
    Refusal{"--minimal", "is set by the field `minimal`"},
    Refusal{"-pch", "is set by the field `pch`"},
    Refusal{"--pch", "is set by the field `pch`"},
    Refusal{"-pch-dir",
            "writes files where it says: the field `pch` has a private folder for them"},
    Refusal{"--pch-dir",
            "writes files where it says: the field `pch` has a private folder for them"},
    Refusal{"-pch-messages", "is set by the field `pch`"},
    Refusal{"--pch-messages", "is set by the field `pch`"},
    Refusal{"-pch-verbose", "is set by the field `pch`"},
    Refusal{"--pch-verbose", "is set by the field `pch`"},
    Refusal{"-create-pch", "writes a file: use the field `pch`"},
    Refusal{"--create-pch", "writes a file: use the field `pch`"},
    Refusal{"-use-pch", "reads a file that no cache knows of: use the field `pch`"},
    Refusal{"--use-pch", "reads a file that no cache knows of: use the field `pch`"},
    Refusal{"-include", "reads a file that no cache knows of: write #include in the source"},
    Refusal{"--pre-include", "reads a file that no cache knows of: write #include in the source"},
    Refusal{"-use-bundled-headers*", "writes files: NVRTC's headers are unpacked when needed"},
    Refusal{"--use-bundled-headers*", "writes files: NVRTC's headers are unpacked when needed"},
    Refusal{"-time", "writes a file: a kernel's report() has the times"},
    Refusal{"--time", "writes a file: a kernel's report() has the times"},
    Refusal{"-fdevice-time-trace", "writes a file: a kernel's report() has the times"},
    Refusal{"--fdevice-time-trace", "writes a file: a kernel's report() has the times"},
    Refusal{"-fdevice-syntax-only", kNoCode},
    Refusal{"--fdevice-syntax-only", kNoCode},
    Refusal{"-dlto", kNoCode},
    Refusal{"--dlink-time-opt", kNoCode},
    Refusal{"-gen-opt-lto", kNoCode},
    Refusal{"--gen-opt-lto", kNoCode},
    Refusal{"-Xcudafe*", "gives the front end options that read and write files"},
    Refusal{"--cudafe-options*", "gives the front end options that read and write files"},
    Refusal{"-keep*", kWrites},
    Refusal{"--keep*", kWrites},
    Refusal{"-o", kWrites},
    Refusal{"--output*", kWrites},
    Refusal{"-odir", kWrites},
    Refusal{"-save-temps", kWrites},
    Refusal{"--save-temps", kWrites},
    Refusal{"-optf", "reads a file that no cache knows of: write the options out"},
    Refusal{"--options-file", "reads a file that no cache knows of: write the options out"},
};

/// Options of ptxas that name files.
constexpr std::array kRefusedOfPtxas{
    Refusal{"-o", kWrites},
    Refusal{"--output-file", kWrites},
    Refusal{"-optf", "reads a file"},
    Refusal{"--options-file", "reads a file"},
};

template <std::size_t N>
void refuse(const std::array<Refusal, N>& table, std::string_view word, const std::string& option) {
  for (const Refusal& row : table) {
    const bool is_stem = row.option.ends_with('*');
    const std::string_view name = row.option.substr(0, row.option.size() - (is_stem ? 1 : 0));
    if (is_stem ? !word.starts_with(name) : word != name) continue;
    throw InvalidArgument(format("option \"{}\" is refused: it {}", option, row.reason));
  }
}

/// The text before the first '=' or blank.
std::string_view first_word(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of("= \t"), text.size()));
}

}  // namespace

void check_extra_option(const std::string& option) {
  if (option.size() < 2 || option[0] != '-') {
    throw InvalidArgument(format("option \"{}\" must start with '-'", option));
  }
  const std::string_view word = first_word(option);
  refuse(kRefused, word, option);
  for (const std::string_view pass : {"-Xptxas", "--ptxas-options"}) {
    if (word != pass) continue;
    std::string_view rest = std::string_view(option).substr(word.size());
    while (!rest.empty()) {
      const auto begin = rest.find_first_not_of("=, \t\"'");
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      const auto end = std::min(rest.find_first_of("=, \t\"'"), rest.size());
      refuse(kRefusedOfPtxas, rest.substr(0, end), option);
      rest.remove_prefix(end);
    }
  }
}

}  // namespace kernwright
