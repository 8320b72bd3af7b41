// Makes tests/sim/programs/program_vectors.txt, in three steps; the last needs a GPU.
//   record_programs --make COUNT FOLDER  writes N.ptx for the seeds 1 to COUNT
//   for p in FOLDER/*.ptx; do ptxas -arch=sm_90 $p -o ${p%.ptx}.cubin; done
//   record_programs --run FOLDER OUT     runs every N.cubin on a GPU, compares with the interpreter
//                                        and with the simulated device, and writes the GPU's
//                                        results; leave out, and name in the file's head, what
//                                        ends in a fault: it takes the device with it
// And for one that differs, with the driver's own compiler where it is the GPU:
//   record_programs --shrink gpu|sim SEED  prints the least program of the seed that the device and
//                                          the interpreter disagree on
// Exit code 1 when anything differs, 2 for any failure.
#include "base/format.h"
#include "record/recording.h"
#include "sim/device.h"
#include "sim/programs/program_interpreter.h"
#include "sim/programs/program_shrinker.h"
#include "sim/programs/program_vectors.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string_view>

using namespace kernwright;
using namespace kernwright::sim;
namespace fs = std::filesystem;

namespace {

int make(unsigned count, const fs::path& folder) {
  fs::create_directories(folder);
  for (unsigned seed = 1; seed <= count; ++seed)
    write_whole(folder / (std::to_string(seed) + ".ptx"), RandomProgram(seed).ptx());
  std::printf("%u programs in %s\n", count, folder.c_str());
  return 0;
}

std::vector<Word32> run_text(const DriverApi& api, const RandomProgram& program) {
  const std::string text = program.ptx();
  return run_program(api, program, text.c_str());
}

/// Whether `got` is what the interpreter computes; else says where not.
bool agrees(const char* who, const RandomProgram& program, const std::vector<Word32>& got,
            const std::vector<Word32>& expected) {
  const std::string text = difference(program, got, expected);
  if (text.empty()) return true;
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(program.seed()), who,
              text.c_str());
  return false;
}

int run(const fs::path& folder, const fs::path& out) {
  const DriverApi& gpu = real_driver();
  make_current(gpu);
  make_current(driver_api());
  ProgramVectors vectors;
  int different = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".cubin") continue;
    const RandomProgram program(std::stoull(entry.path().stem().string()));
    const auto expected = interpret(program);
    const auto got = run_program(gpu, program, read_whole(entry.path()).data());
    const bool gpu_agrees = agrees("the GPU", program, got, expected);
    const auto simulated = run_text(driver_api(), program);
    const bool both = agrees("the simulated device", program, simulated, expected) && gpu_agrees;
    different += both ? 0 : 1;
    vectors[program.seed()] = ProgramVector::of(program, got);
  }
  if (vectors.empty()) throw std::runtime_error("no N.cubin in " + folder.string());
  write_whole(out, to_text(vectors, "recorded on " + device_name(gpu)));
  std::printf("%zu programs in %s, %d differ\n", vectors.size(), out.c_str(), different);
  return different == 0 ? 0 : 1;
}

int shrink_one(bool on_gpu, std::uint64_t seed) {
  const DriverApi& api = on_gpu ? real_driver() : driver_api();
  make_current(api);
  const auto differs = [&](const RandomProgram& program) {
    return run_text(api, program) != interpret(program);
  };
  const RandomProgram program(seed);
  if (!differs(program)) {
    std::printf("seed %llu: no difference\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  const RandomProgram least = shrink(program, differs);
  std::printf("%s\n// %zu of %zu nodes: %s\n", least.ptx().c_str(), least.size(), program.size(),
              difference(least, run_text(api, least), interpret(least)).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc == 4 ? argv[1] : "";
  if (mode == "--make") return make(static_cast<unsigned>(std::stoul(argv[2])), argv[3]);
  if (mode == "--run") return run(argv[2], argv[3]);
  const std::string_view device = argc == 4 ? argv[2] : "";
  if (mode == "--shrink" && (device == "gpu" || device == "sim"))
    return shrink_one(device == "gpu", std::stoull(argv[3]));
  throw std::runtime_error("wants --make, --run or --shrink: see the head of its source");
} catch (const std::exception& error) {
  std::fprintf(stderr, "record_programs: %s\n", error.what());
  return 2;
}
