// Makes tests/sim/rows/row_vectors.txt, in three steps; the last needs a GPU.
//   record_rows --make KNOWN FOLDER     writes STEM.ptx for every instruction of the ISA table, and
//                                       carry_chains.ptx
//   (an assembler: STEM.ptx to STEM.cubin; assemble_rows.py lists the opcodes that it refuses)
//   record_rows --run KNOWN FOLDER OUT  runs every STEM.cubin on a GPU and STEM.ptx on the
//   simulated
//                                       device, writes the results, names what differs
//   record_rows --simulate KNOWN OUT    on the simulated device alone
// Of what KNOWN has a line for, "opcode<tab>refused" or a result of before, nothing is made or run;
// the line goes into OUT. Lines "opcode<tab>unrecorded" do not count. Exit code 2 for any failure.
#include "record/recording.h"
#include "sim/device.h"
#include "sim/rows/carry_chains.h"
#include "sim/rows/row_vectors.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>

using namespace kernwright;
using namespace kernwright::sim;
namespace fs = std::filesystem;

namespace {

constexpr const char* kChains = "carry_chains";

std::vector<CarryChain> chains_without(const RowVectors& known) {
  std::vector<CarryChain> chains = carry_chains();
  std::erase_if(chains, [&](const CarryChain& chain) { return known.contains(chain.name()); });
  return chains;
}

RowVectors read_known(const std::string& path) {
  RowVectors known = read_row_vectors(path);
  std::erase_if(known, [](const auto& line) { return line.second == kUnrecorded; });
  return known;
}

int make(const RowVectors& known, const fs::path& folder) {
  fs::create_directories(folder);
  std::size_t count = 0;
  for (const auto& [stem, forms] : forms_by_stem(known)) {
    write_whole(folder / (stem + ".ptx"), RowProgram(forms).ptx("sm_90"));
    count += forms.size();
  }
  const std::vector<CarryChain> chains = chains_without(known);
  if (!chains.empty())
    write_whole(folder / (std::string(kChains) + ".ptx"), ChainProgram(chains).ptx("sm_90"));
  count += chains.size();
  std::printf("%zu opcodes in %s\n", count, folder.c_str());
  return 0;
}

/// The lines of all forms of one stem, from `image` on the device of `api`.
std::vector<std::string> lines_of(const DriverApi& api, const std::string& stem,
                                  const std::string& image, const std::vector<RowForm>& forms) {
  try {
    return run_rows(api, image.data(), forms);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(stem + ": " + error.what());
  }
}

std::vector<std::string> chain_lines(const DriverApi& api, const std::string& image,
                                     const std::vector<CarryChain>& chains) {
  std::vector<std::string> lines;
  for (const auto& words : run_chains(api, image.data(), chains))
    lines.push_back(chain_line(words));
  return lines;
}

/// The line of `name`: the GPU's result and, where it is another, ours.
bool note(RowVectors& vectors, const std::string& name, const std::string& gpu,
          const std::string& simulated, bool exact) {
  const bool differs = exact && gpu != simulated;
  if (differs) std::printf("differs: %s\n", name.c_str());
  vectors[name] = differs ? kDiffers + gpu + " " + simulated : gpu;
  return differs;
}

/// With no folder: on the simulated device alone.
int run(RowVectors vectors, const fs::path& folder, const fs::path& out) {
  const DriverApi* const gpu = folder.empty() ? nullptr : &real_driver();
  if (gpu != nullptr) make_current(*gpu);
  make_current(driver_api());
  int different = 0;
  for (const auto& [stem, forms] : forms_by_stem(vectors)) {
    const auto simulated = lines_of(driver_api(), stem, RowProgram(forms).ptx("sm_90"), forms);
    std::vector<std::string> lines = simulated;
    if (gpu != nullptr) lines = lines_of(*gpu, stem, read_whole(folder / (stem + ".cubin")), forms);
    for (std::size_t i = 0; i < forms.size(); ++i)
      different +=
          note(vectors, forms[i].opcode, lines[i], simulated[i], !forms[i].is_approximate());
  }
  if (const std::vector<CarryChain> chains = chains_without(vectors); !chains.empty()) {
    const auto simulated = chain_lines(driver_api(), ChainProgram(chains).ptx("sm_90"), chains);
    std::vector<std::string> lines = simulated;
    if (gpu != nullptr)
      lines = chain_lines(*gpu, read_whole(folder / (std::string(kChains) + ".cubin")), chains);
    for (std::size_t i = 0; i < chains.size(); ++i)
      different += note(vectors, chains[i].name(), lines[i], simulated[i], true);
  }
  write_whole(out, to_text(vectors));
  std::printf("%zu opcodes in %s, %d differ\n", vectors.size(), out.c_str(), different);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--make" && argc == 4) return make(read_known(argv[2]), argv[3]);
  if (mode == "--run" && argc == 5) return run(read_known(argv[2]), argv[3], argv[4]);
  if (mode == "--simulate" && argc == 4) return run(read_known(argv[2]), {}, argv[3]);
  throw std::runtime_error("wants --make, --run or --simulate: see the head of its source");
} catch (const std::exception& error) {
  std::fprintf(stderr, "record_rows: %s\n", error.what());
  return 2;
}
