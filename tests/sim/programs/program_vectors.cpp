// The file of random programs' results.
#include "sim/programs/program_vectors.h"

#include "base/format.h"
#include "base/hash.h"
#include "record/recording.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <sstream>
#include <stdexcept>

namespace kernwright::sim {
namespace {

std::uint64_t hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size())
    throw std::runtime_error(format("\"{}\" is no hexadecimal number", text));
  return value;
}

ProgramVector read_vector(std::istringstream& line) {
  ProgramVector vector;
  std::string text, output, words;
  if (!(line >> text >> output)) throw std::runtime_error("two hashes are needed");
  vector.text = hex(text);
  vector.output = hex(output);
  line >> words;
  if (words.size() % 8 != 0) throw std::runtime_error("words have 8 digits each");
  for (std::size_t i = 0; i < words.size(); i += 8)
    vector.words.push_back(static_cast<Word32>(hex(std::string_view(words).substr(i, 8))));
  return vector;
}

std::string place_of(const RandomProgram& program, std::size_t word) {
  if (word < program.first_slot()) {
    const std::size_t thread = word / RandomProgram::kOutputs, at = word % RandomProgram::kOutputs;
    if (at < RandomProgram::kRegisters) return format("thread {}, %r{}", thread, at);
    return format("thread {}, %w{}", thread, (at - RandomProgram::kRegisters) / 2);
  }
  const std::size_t slot = (word - program.first_slot()) / 2;
  const std::size_t slots = RandomProgram::slot_words() / 2, block = slot / slots;
  return block == program.grid() ? format("global slot {}", slot % slots)
                                 : format("slot {} of block {}", slot % slots, block);
}

}  // namespace

ProgramVector ProgramVector::of(const RandomProgram& program, const std::vector<Word32>& words) {
  ProgramVector vector;
  vector.text = hash_text(program.ptx()).low;
  vector.output = hash_bytes(std::as_bytes(std::span(words))).low;
  if (program.grid() == 1) vector.words = words;
  return vector;
}

ProgramVectors read_program_vectors(const std::string& path) {
  std::istringstream file(read_whole(path));
  ProgramVectors vectors;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.empty() || text[0] == '#') continue;
    std::istringstream line(text);
    std::uint64_t seed = 0;
    try {
      if (!(line >> seed)) throw std::runtime_error("a seed is needed");
      vectors[seed] = read_vector(line);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(format("{}:{}: {}", path, number, error.what()));
    }
  }
  return vectors;
}

std::string to_text(const ProgramVectors& vectors, const std::string& remark) {
  std::string text = "# " + remark + "\n";
  for (const auto& [seed, vector] : vectors) {
    text += format("{}\t{:016x}\t{:016x}", seed, vector.text, vector.output);
    if (!vector.words.empty()) text += '\t';
    for (const Word32 word : vector.words) text += format("{:08x}", word);
    text += '\n';
  }
  return text;
}

std::vector<Word32> run_program(const DriverApi& api, const RandomProgram& program,
                                const void* image) {
  const std::vector<Word32> input = program.input();
  RecordedModule module(api, image, std::as_bytes(std::span(input)),
                        program.words() * sizeof(Word32));
  const auto bytes = module.run("random_program", program.grid(), program.block());
  std::vector<Word32> words(program.words());
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

std::string difference(const RandomProgram& program, const std::vector<Word32>& got,
                       const std::vector<Word32>& expected) {
  if (got.size() != expected.size()) return format("{} words, not {}", got.size(), expected.size());
  const auto [first, other] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (first == got.end()) return {};
  std::size_t count = 0;
  for (std::size_t i = 0; i < got.size(); ++i) count += got[i] != expected[i] ? 1 : 0;
  return format("{}: {:08x}, not {:08x} ({} of {} words)",
                place_of(program, static_cast<std::size_t>(first - got.begin())), *first, *other,
                count, got.size());
}

}  // namespace kernwright::sim
