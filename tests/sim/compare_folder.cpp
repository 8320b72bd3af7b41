// Runs a folder of PTX programs on a GPU and on the simulated device, and compares every bit.
//   compare_folder --make COUNT FOLDER   writes random programs: N.ptx and N.in
//   compare_folder FOLDER                runs all; writes what the GPU computed to N.out
//   compare_folder --recorded FOLDER     compares with N.out; needs no GPU
// Every program is `random_program(in, out)` (random_program.h), N.in holds the words of its input.
// Exit code 1 when any output differs, 2 for anything else.
#include "driver/driver_loader.h"
#include "sim/device.h"
#include "sim/random_program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

using namespace kernwright;
using namespace kernwright::sim;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned kBlock = 45;  // a warp that is full and one that is not
constexpr unsigned kBlocks = 2;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::string_view bytes(const Words& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t)};
}

int make(unsigned count, const fs::path& folder) {
  fs::create_directories(folder);
  for (unsigned seed = 1; seed <= count; ++seed) {
    const std::string name = std::to_string(seed);
    write(folder / (name + ".ptx"), RandomProgram(seed).ptx());
    write(folder / (name + ".in"), bytes(RandomProgram::input(seed, kBlock * kBlocks)));
  }
  std::printf("%u programs in %s\n", count, folder.c_str());
  return 0;
}

void check(const DriverApi& api, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  throw std::runtime_error(std::string(what) + ": " + (text != nullptr ? text : "unknown"));
}

void make_current(const DriverApi& api) {
  CUcontext context = nullptr;
  check(api, api.cuInit(0), "cuInit");
  check(api, api.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(api, api.cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

Words run(const DriverApi& api, const std::string& ptx, const std::string& input) {
  const std::size_t threads = input.size() / (RandomProgram::kInputs * sizeof(std::uint32_t));
  Words result(threads * RandomProgram::kOutputs);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr in = 0, out = 0;
  check(api, api.cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");
  check(api, api.cuModuleGetFunction(&function, module, "random_program"), "cuModuleGetFunction");
  check(api, api.cuMemAlloc(&in, input.size()), "cuMemAlloc");
  check(api, api.cuMemAlloc(&out, bytes(result).size()), "cuMemAlloc");
  check(api, api.cuMemcpyHtoD(in, input.data(), input.size()), "cuMemcpyHtoD");
  void* parameters[] = {&in, &out};
  const auto blocks = static_cast<unsigned>(threads / kBlock);
  check(api,
        api.cuLaunchKernel(function, blocks, 1, 1, kBlock, 1, 1, 0, nullptr, parameters, nullptr),
        "cuLaunchKernel");
  check(api, api.cuMemcpyDtoH(result.data(), out, bytes(result).size()), "cuMemcpyDtoH");
  check(api, api.cuMemFree(in), "cuMemFree");
  check(api, api.cuMemFree(out), "cuMemFree");
  check(api, api.cuModuleUnload(module), "cuModuleUnload");
  return result;
}

/// Whether both devices agree; says where they do not first, and how often.
bool compare(const std::string& name, const Words& gpu, const Words& sim) {
  if (gpu.size() != sim.size()) throw std::runtime_error(name + ": results of another size");
  const auto [at, other] = std::mismatch(gpu.begin(), gpu.end(), sim.begin());
  if (at == gpu.end()) return true;
  const auto index = static_cast<unsigned>(at - gpu.begin());
  int different = 0;
  for (std::size_t i = 0; i < gpu.size(); ++i) different += gpu[i] != sim[i] ? 1 : 0;
  std::printf(
      "%s: thread %u, register %u: the GPU has %08x, the simulated device %08x (%d of %zu)\n",
      name.c_str(), index / RandomProgram::kOutputs, index % RandomProgram::kOutputs, *at, *other,
      different, gpu.size());
  return false;
}

Words words(const std::string& text) {
  Words result(text.size() / sizeof(std::uint32_t));
  std::memcpy(result.data(), text.data(), result.size() * sizeof(std::uint32_t));
  return result;
}

/// With `recorded`, the GPU's results are the N.out of an earlier run.
int compare_all(const fs::path& folder, bool recorded) {
  std::string reason;
  const DriverApi* const gpu = recorded ? nullptr : load_cuda_driver(&reason);
  if (gpu == nullptr && !recorded) throw std::runtime_error(reason);
  if (gpu != nullptr) make_current(*gpu);
  make_current(driver_api());
  std::vector<fs::path> programs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".ptx") programs.push_back(entry.path());
  }
  std::sort(programs.begin(), programs.end());
  int different = 0;
  for (const fs::path& path : programs) {
    const std::string ptx = read(path), input = read(fs::path(path).replace_extension(".in"));
    const fs::path output = fs::path(path).replace_extension(".out");
    const Words on_gpu = recorded ? words(read(output)) : run(*gpu, ptx, input);
    if (!recorded) write(output, bytes(on_gpu));
    const bool same = compare(path.filename().string(), on_gpu, run(driver_api(), ptx, input));
    different += same ? 0 : 1;
  }
  std::printf("%zu programs, %d differ\n", programs.size(), different);
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 4 && std::string_view(argv[1]) == "--make") {
    return make(static_cast<unsigned>(std::stoul(argv[2])), argv[3]);
  }
  const bool recorded = argc == 3 && std::string_view(argv[1]) == "--recorded";
  if (argc != 2 && !recorded) {
    throw std::runtime_error("wants a folder, --recorded FOLDER, or --make COUNT FOLDER");
  }
  return compare_all(argv[argc - 1], recorded);
} catch (const std::exception& error) {
  std::fprintf(stderr, "compare_folder: %s\n", error.what());
  return 2;
}
