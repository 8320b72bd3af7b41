// Loads PTX files as the simulated device would and names what it refuses: check_ptx [-v] FILE...
// Exit code 1 when any file is refused. With -v also prints every opcode that the files use.
#include "sim/device/module/loader.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

using namespace kernwright::sim;

namespace {

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("cannot be read");
  return text.str();
}

/// Parses, verifies and decodes one file; false when any step refuses it.
bool check(const char* path, std::set<std::string>& opcodes) try {
  Memory memory(std::uint64_t{1} << 30);
  const LoadedModule module(read(path), memory);
  for (const ptx::Function& function : module.program().module->functions) {
    for (const ptx::Instruction& instruction : function.body) {
      opcodes.emplace(instruction.opcode);
    }
  }
  return true;
} catch (const std::exception& error) {
  std::printf("%s: %s\n", path, error.what());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::set<std::string> opcodes;
  int refused = 0, files = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-v") {
      verbose = true;
      continue;
    }
    ++files;
    refused += check(argv[i], opcodes) ? 0 : 1;
  }
  if (verbose) {
    for (const std::string& opcode : opcodes) std::printf("%s\n", opcode.c_str());
  }
  std::printf("%d files, %d refused, %zu opcodes\n", files, refused, opcodes.size());
  return refused == 0 ? 0 : 1;
}
