// The file of hashes, and running the programs that it is made from.
#include "sim/rows/row_vectors.h"

#include "base/format.h"
#include "record/recording.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace kernwright::sim {
namespace {

std::string line(const RowForm& form, std::span<const std::uint64_t> words) {
  if (!form.is_approximate()) return format("{:016x}", RowProgram::hash(form, words));
  std::string result = "~";
  for (const std::uint64_t word : words.first(kApproximations)) result += format("{:016x}", word);
  return result;
}

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
  RecordedModule module(api, image, std::as_bytes(std::span(input)),
                        RowProgram::kFormsPerKernel * kWords * sizeof(std::uint64_t));
  std::vector<std::string> lines;
  for (std::size_t first = 0; first < forms.size(); first += RowProgram::kFormsPerKernel) {
    const std::string name = format("rows_{}", first / RowProgram::kFormsPerKernel);
    const auto bytes =
        module.run(name, RowProgram::kThreads / RowProgram::kBlock, RowProgram::kBlock);
    std::vector<std::uint64_t> output(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(output.data(), bytes.data(), bytes.size());
    const std::size_t count =
        std::min<std::size_t>(forms.size() - first, RowProgram::kFormsPerKernel);
    for (std::size_t i = 0; i < count; ++i) {
      const auto words = std::span(output).subspan(i * kWords, kWords);
      lines.push_back(line(forms[first + i], words));
    }
  }
  return lines;
}

}  // namespace kernwright::sim
