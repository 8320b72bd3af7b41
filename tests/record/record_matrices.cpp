// Makes tests/sim/rows/matrix_vectors.txt, in the steps of record_rows.cpp:
//   record_matrices --make REFUSED FOLDER     writes matrices.ptx
//   (assemble_rows.py RECORD_MATRICES REFUSED FOLDER does this and assembles matrices.cubin)
//   record_matrices --run REFUSED FOLDER OUT  runs it on a GPU, and the PTX on the simulated device
//                                             of capability 9.0; names what differs
// Exit code 1 when anything differs, 2 for any failure.
#include "record/recording.h"
#include "sim/device.h"
#include "sim/rows/matrix_rows.h"
#include "sim/rows/row_vectors.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>

using namespace kernwright;
using namespace kernwright::sim;
namespace fs = std::filesystem;

namespace {

std::vector<MatrixForm> forms_without(const RowVectors& refused) {
  std::vector<MatrixForm> forms = matrix_forms();
  std::erase_if(forms, [&](const MatrixForm& form) {
    const auto found = refused.find(form.name());
    return found != refused.end() && found->second == kRefused;
  });
  return forms;
}

int make(const RowVectors& refused, const fs::path& folder) {
  fs::create_directories(folder);
  const std::vector<MatrixForm> forms = forms_without(refused);
  write_whole(folder / "matrices.ptx", MatrixProgram::ptx(forms, "sm_90"));
  std::printf("%zu forms in %s\n", forms.size(), folder.c_str());
  return 0;
}

int run(RowVectors vectors, const fs::path& folder, const fs::path& out) {
  const DriverApi& gpu = real_driver();
  make_current(gpu);
  make_current(driver_api());
  const std::vector<MatrixForm> forms = forms_without(vectors);
  const std::string text = MatrixProgram::ptx(forms, "sm_90");
  const auto simulated = run_matrices(driver_api(), text.c_str(), forms);
  const auto lines = run_matrices(gpu, read_whole(folder / "matrices.cubin").data(), forms);
  int different = 0;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    vectors[forms[i].name()] = lines[i];
    if (lines[i] == simulated[i]) continue;
    std::printf("differs: %s\n", forms[i].name().c_str());
    ++different;
  }
  write_whole(out, to_text(vectors));
  std::printf("%zu forms in %s on %s, %d differ\n", forms.size(), out.c_str(),
              device_name(gpu).c_str(), different);
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--make" && argc == 4) return make(read_row_vectors(argv[2]), argv[3]);
  if (mode == "--run" && argc == 5) return run(read_row_vectors(argv[2]), argv[3], argv[4]);
  throw std::runtime_error("wants --make or --run: see the head of its source");
} catch (const std::exception& error) {
  std::fprintf(stderr, "record_matrices: %s\n", error.what());
  return 2;
}
