// The PTX texts of tests/sim/ptx.tar.xz, which the build unpacks.
#include "unit/sim/ptx/ptx_fixture.h"

#include <algorithm>

namespace kernwright::sim::ptx::testing {

std::filesystem::path tests_folder() { return KW_TESTS_FOLDER; }

std::filesystem::path ptx_folder() { return KW_PTX_FOLDER; }

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ptx_folder())) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace kernwright::sim::ptx::testing
