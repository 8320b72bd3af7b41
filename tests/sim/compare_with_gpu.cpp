// Runs the cases on a GPU and on the simulated device with the same PTX, compares, and can store
// what the GPU computed: compare_with_gpu [vectors.json to write]. Exit code 1 when any array
// differs.
#include "record/recording.h"
#include "sim/device.h"
#include "sim/kernel_case.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// The GPU's driver may be older than the newest NVRTC, so the oldest text of the corpus is used.
std::string oldest_ptx(const KernelCase& kernel_case) {
  const auto files = ptx_files(kernel_case.source, ".80.ptx");
  if (files.empty()) throw std::runtime_error("no PTX for " + kernel_case.source);
  return files.front();
}

std::string to_hex(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

/// Number of arrays of the case that differ.
int compare(const KernelCase& kernel_case, const Buffers& gpu, const Buffers& sim) {
  int different = 0;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const CaseArgument& argument = kernel_case.arguments[i];
    if (argument.count == 0 || argument.order_dependent) continue;
    const std::string text = difference(argument.type, sim[i], gpu[i], argument.on_gpu);
    if (text.empty()) continue;
    std::printf("%s, argument %zu: %s\n", kernel_case.name.c_str(), i, text.c_str());
    ++different;
  }
  return different;
}

nlohmann::json row_of(const KernelCase& kernel_case, const std::string& ptx, const Buffers& gpu) {
  nlohmann::json results;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const CaseArgument& argument = kernel_case.arguments[i];
    if (argument.is_output && !argument.order_dependent) {
      results[std::to_string(i)] = to_hex(gpu[i]);
    }
  }
  return {{"ptx", ptx}, {"results", results}};
}

void write_vectors(const char* path, const std::map<std::string, nlohmann::json>& vectors,
                   const DriverApi& gpu) {
  int version = 0;
  gpu.cuDriverGetVersion(&version);
  std::ofstream file(path);
  file << "{\n\"about\": \"What a GPU computed for the cases of cases.json: bytes of each "
          "array.\",\n"
       << "\"device\": \"" << device_name(gpu) << "\", \"driver\": " << version
       << ",\n\"vectors\": {\n";
  const char* separator = "";
  for (const auto& [key, row] : vectors) {
    file << separator << '"' << key << "\": " << row.dump();
    separator = ",\n";
  }
  file << "\n}\n}\n";
}

int run(const char* path) {
  const DriverApi& gpu = real_driver();
  make_current(gpu);
  make_current(driver_api());
  std::map<std::string, nlohmann::json> vectors;
  int different = 0, cases = 0;
  for (const KernelCase& kernel_case : load_cases()) {
    const std::string file = oldest_ptx(kernel_case);
    const std::string ptx = read_ptx(file);
    const Buffers on_gpu = run_case(gpu, kernel_case, ptx);
    vectors[kernel_case.name] = row_of(kernel_case, file, on_gpu);
    different += compare(kernel_case, on_gpu, run_case(driver_api(), kernel_case, ptx));
    ++cases;
  }
  if (path != nullptr) write_vectors(path, vectors, gpu);
  std::printf("%d cases, %d arrays differ\n", cases, different);
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? argv[1] : nullptr);
} catch (const std::exception& error) {
  std::fprintf(stderr, "compare_with_gpu: %s\n", error.what());
  return 2;
}
