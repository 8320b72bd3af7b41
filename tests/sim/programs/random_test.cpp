// Random programs on the simulated device, against their interpreter and what a GPU computed.
#include "record/recording.h"
#include "sim/programs/program_interpreter.h"
#include "sim/programs/program_shrinker.h"
#include "sim/programs/program_vectors.h"
#include "unit/base/temporary_directory.h"
#include "unit/sim/device/device_fixture.h"

#include <chrono>
#include <cstdlib>
#include <set>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr const char* kRecorded = KW_SIM_TEST_DATA "/programs/program_vectors.txt";

std::vector<Word32> run(CurrentDevice& device, const RandomProgram& program) {
  const std::string text = program.ptx();
  std::vector<Word32> words;
  try {
    words = run_program(device.api, program, text.c_str());
  } catch (const std::runtime_error& error) {
    FAIL("seed ", program.seed(), ": ", error.what(), "\n", device.report().to_string());
  }
  return words;
}

void count(const ProgramNodes& nodes, std::set<std::pair<int, unsigned>>& kinds) {
  for (const ProgramNode& node : nodes) {
    kinds.insert({static_cast<int>(node.kind), node.number});
    for (const ProgramNodes& body : node.bodies) count(body, kinds);
  }
}

}  // namespace

TEST_CASE("random programs: the simulated device agrees with the interpreter") {
  CurrentDevice device;
  const char* const wanted = std::getenv("KERNWRIGHT_FUZZ_SECONDS");
  const auto limit = std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 4);
  const auto start = std::chrono::steady_clock::now();
  const auto differs = [&](const RandomProgram& program) {
    return run(device, program) != interpret(program);
  };
  unsigned programs = 0;
  for (std::uint64_t seed = 1; seed <= 400 || wanted != nullptr; ++seed) {
    if (programs >= 40 && std::chrono::steady_clock::now() - start > limit) break;
    const RandomProgram program(seed);
    const std::string text = difference(program, run(device, program), interpret(program));
    ++programs;
    if (text.empty()) continue;
    const RandomProgram least = shrink(program, differs);
    FAIL_CHECK("seed ", seed, ": ", text, "\n", least.ptx());
  }
  CHECK(programs >= 40);
}

TEST_CASE("random programs: what a GPU computed") {
  CurrentDevice device;
  const ProgramVectors vectors = read_program_vectors(kRecorded);
  CHECK(vectors.size() >= 398);
  for (const auto& entry : vectors) {
    const auto seed = entry.first;  // clang 14 captures no names of a structured binding
    const auto& vector = entry.second;
    const RandomProgram program(seed);
    const ProgramVector now = ProgramVector::of(program, run(device, program));
    INFO("seed ", seed);
    REQUIRE_MESSAGE(now.text == vector.text, "another program: record them again");
    CHECK(now == vector);
  }
}

TEST_CASE("random programs: a seed gives one program and one input, seeds give all there is") {
  CHECK(RandomProgram(7).ptx() == RandomProgram(7).ptx());
  CHECK(RandomProgram(7).ptx() != RandomProgram(8).ptx());
  CHECK(RandomProgram(7).input() == RandomProgram(7).input());
  std::set<std::pair<int, unsigned>> kinds;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) count(RandomProgram(seed).body(), kinds);
  const auto all = [&](ProgramNode::Kind kind, std::size_t numbers) {
    for (unsigned i = 0; i < numbers; ++i) {
      INFO("kind ", static_cast<int>(kind), ", number ", i);
      CHECK(kinds.contains({static_cast<int>(kind), i}));
    }
  };
  using Kind = ProgramNode::Kind;
  all(Kind::operation, operation_count());
  all(Kind::warp, warp_operations().size());
  all(Kind::atomic, atomic_operations().size());
  all(Kind::call, 3);
  for (const Kind kind :
       {Kind::branch, Kind::uniform_branch, Kind::loop, Kind::uniform_loop, Kind::until,
        Kind::leave, Kind::choice, Kind::local, Kind::gather, Kind::exchange})
    all(kind, 1);
}

TEST_CASE("random programs: a fault of one instruction shrinks to a program of few") {
  int shown = 0;
  for (unsigned broken = 0; broken < operation_count(); broken += 9) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const RandomProgram program(seed);
      const auto differs = [broken](const RandomProgram& candidate) {
        return interpret(candidate) != interpret(candidate, static_cast<int>(broken));
      };
      if (!differs(program)) continue;
      const RandomProgram least = shrink(program, differs);
      INFO("operation ", operation(broken).text, ", seed ", seed, "\n", least.ptx());
      CHECK(differs(least));
      CHECK(least.size() == 1);  // its result is written as it is
      CHECK(least.body()[0].number == broken);
      ++shown;
      break;
    }
  }
  CHECK(shown >= 10);
}

TEST_CASE("random programs: the file of results is read as it was written") {
  const RandomProgram program(10), other(11);
  ProgramVectors vectors;
  vectors[10] = ProgramVector::of(program, interpret(program));
  vectors[11] = ProgramVector::of(other, interpret(other));
  CHECK(vectors[10].words.size() == program.words());
  CHECK(vectors[11].words.empty());
  const test::TemporaryDirectory folder;  // several of these tests run at a time
  const std::string path = folder / "vectors.txt";
  write_whole(path, to_text(vectors, "a remark"));
  CHECK(read_program_vectors(path) == vectors);
  write_whole(path, "10\t12\n");
  CHECK_THROWS_WITH(read_program_vectors(path), doctest::Contains("two hashes are needed"));
  auto words = interpret(program);
  words[RandomProgram::kOutputs + 18] ^= 1;
  CHECK(difference(program, words, interpret(program)).starts_with("thread 1, %w1: "));
}
