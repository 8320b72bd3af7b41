// Every opcode of mma and mma.sp, against what a GPU computed (matrix_vectors.txt).
#include "sim/rows/matrix_rows.h"
#include "sim/rows/row_vectors.h"
#include "unit/sim/device/device_fixture.h"

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr const char* kFile = KW_SIM_TEST_DATA "/rows/matrix_vectors.txt";

/// Those that the current device has.
std::vector<MatrixForm> forms_here(const DriverApi& api, std::string& target) {
  int major = 0, minor = 0;
  api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  std::vector<MatrixForm> forms = matrix_forms();
  std::erase_if(forms,
                [&](const MatrixForm& form) { return form.row->min_sm > major * 10 + minor; });
  target = major >= 9 ? "sm_90" : "sm_80";
  return forms;
}

}  // namespace

TEST_CASE("rows: both spellings of mma.sp compute the same, selectors choose other metadata") {
  CurrentDevice device;
  std::string target;
  const std::vector<MatrixForm> forms = forms_here(device.api, target);
  std::vector<std::string> lines;
  const std::string text = MatrixProgram::ptx(forms, target);
  REQUIRE_NOTHROW(lines = run_matrices(device.api, text.c_str(), forms));
  std::map<std::string, std::string> by_name;
  for (std::size_t i = 0; i < forms.size(); ++i) by_name[forms[i].name()] = lines[i];
  int spellings = 0, selectors = 0;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (forms[i].selector < 0) continue;
    std::string other = forms[i].name();
    const std::string word = "sp::ordered_metadata";
    if (const std::size_t at = other.find(word); at != std::string::npos) {
      CHECK_MESSAGE(lines[i] == by_name.at(other.replace(at, word.size(), "sp")), other);
      ++spellings;
    }
    for (std::size_t j = i + 1; j < forms.size() && forms[j].opcode == forms[i].opcode; ++j) {
      CHECK_MESSAGE(lines[i] != lines[j], forms[j].name());
      ++selectors;
    }
  }
  CHECK(spellings > 60);
  CHECK(selectors > 60);
}

TEST_CASE("rows: mma computes what a GPU computed") {
  CurrentDevice device;
  const RowVectors vectors = read_row_vectors(kFile);
  CHECK(vectors.size() == matrix_forms().size());
  std::string target;
  std::vector<MatrixForm> forms = forms_here(device.api, target);
  std::erase_if(forms, [&](const MatrixForm& form) {
    const auto found = vectors.find(form.name());
    return found != vectors.end() && found->second == kRefused;
  });
  std::vector<std::string> lines;
  const std::string text = MatrixProgram::ptx(forms, target);
  REQUIRE_NOTHROW(lines = run_matrices(device.api, text.c_str(), forms));
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CHECK_MESSAGE(lines[i] == vectors.at(forms[i].name()), forms[i].name());
  }
  CHECK(forms.size() > 150);
}
