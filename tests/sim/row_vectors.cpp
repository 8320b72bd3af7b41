// The file of hashes, and running the programs that it is made from.
#include "sim/row_vectors.h"

#include "base/format.h"

#include <fstream>
#include <stdexcept>

namespace kernwright::sim {
namespace {

void check(const DriverApi& api, CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  throw std::runtime_error(format("{}: {}", what, text != nullptr ? text : "unknown"));
}

std::string line(const RowForm& form, std::span<const std::uint64_t> words) {
  if (!form.is_approximate()) return format("{:016x}", RowProgram::hash(form, words));
  std::string result = "~";
  for (const std::uint64_t word : words.first(kApproximations)) result += format("{:016x}", word);
  return result;
}

/// Device memory for a scope.
class Memory {
 public:
  Memory(const DriverApi& api, std::size_t bytes) : api_(api) {
    check(api, api.cuMemAlloc(&address, bytes), "cuMemAlloc");
  }
  ~Memory() { api_.cuMemFree(address); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  CUdeviceptr address = 0;

 private:
  const DriverApi& api_;
};

}  // namespace

RowVectors read_row_vectors(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  RowVectors vectors;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) throw std::runtime_error("no tab in a line of " + path);
    vectors[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return vectors;
}

std::string to_text(const RowVectors& vectors) {
  std::string text;
  for (const auto& [opcode, result] : vectors) text += opcode + "\t" + result + "\n";
  return text;
}

std::map<std::string, std::vector<RowForm>> forms_by_stem(const RowVectors& without) {
  std::map<std::string, std::vector<RowForm>> stems;
  for (RowForm& form : row_forms()) {
    if (without.contains(form.opcode)) continue;
    stems[std::string(form.row->stem)].push_back(std::move(form));
  }
  return stems;
}

std::vector<std::string> run_rows(const DriverApi& api, const void* image,
                                  std::span<const RowForm> forms) {
  constexpr std::size_t kWords = std::size_t{RowProgram::kVariants} * RowProgram::kThreads;
  const std::vector<std::uint64_t> input = RowProgram::input();
  std::vector<std::uint64_t> output(RowProgram::kFormsPerKernel * kWords);
  const std::size_t bytes = output.size() * sizeof output[0];
  CUmodule module = nullptr;
  check(api, api.cuModuleLoadData(&module, image), "cuModuleLoadData");
  std::vector<std::string> lines;
  {
    const Memory in(api, input.size() * sizeof input[0]), out(api, bytes);
    check(api, api.cuMemcpyHtoD(in.address, input.data(), input.size() * sizeof input[0]),
          "upload");
    for (std::size_t first = 0; first < forms.size(); first += RowProgram::kFormsPerKernel) {
      const std::string name = format("rows_{}", first / RowProgram::kFormsPerKernel);
      CUfunction function = nullptr;
      check(api, api.cuModuleGetFunction(&function, module, name.c_str()), name);
      check(api, api.cuMemsetD8(out.address, 0, bytes), "cuMemsetD8");
      CUdeviceptr addresses[] = {in.address, out.address};
      void* parameters[] = {&addresses[0], &addresses[1]};
      check(api,
            api.cuLaunchKernel(function, RowProgram::kThreads / RowProgram::kBlock, 1, 1,
                               RowProgram::kBlock, 1, 1, 0, nullptr, parameters, nullptr),
            name);
      check(api, api.cuMemcpyDtoH(output.data(), out.address, bytes), "download of " + name);
      const std::size_t count =
          std::min<std::size_t>(forms.size() - first, RowProgram::kFormsPerKernel);
      for (std::size_t i = 0; i < count; ++i) {
        const auto words = std::span(output).subspan(i * kWords, kWords);
        lines.push_back(line(forms[first + i], words));
      }
    }
  }
  check(api, api.cuModuleUnload(module), "cuModuleUnload");
  return lines;
}

}  // namespace kernwright::sim
