// What a GPU computed for random programs: a file of hashes, and how to run one.
#pragma once

#include "driver/driver_api.h"
#include "sim/programs/random_program.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kernwright::sim {

/// One program. The whole output is there for programs of one warp alone.
struct ProgramVector {
  std::uint64_t text = 0;    ///< hash of the program's PTX: another one needs another recording
  std::uint64_t output = 0;  ///< hash of all words
  std::vector<Word32> words;

  static ProgramVector of(const RandomProgram& program, const std::vector<Word32>& words);
  bool operator==(const ProgramVector&) const = default;
};

/// By seed. The file has a line of each: the seed, the hashes (16 digits each), the words (8 digits
/// each), with tabs between; lines with # are remarks.
using ProgramVectors = std::map<std::uint64_t, ProgramVector>;

ProgramVectors read_program_vectors(const std::string& path);
std::string to_text(const ProgramVectors& vectors, const std::string& remark);

/// Runs `image`, the program's PTX or what an assembler made of it, in the current context and
/// returns what it wrote. Throws std::runtime_error with the driver's error.
std::vector<Word32> run_program(const DriverApi& api, const RandomProgram& program,
                                const void* image);

/// Empty, or where two outputs differ first: "thread 3, %w1: A, not B (5 of 99 words)".
std::string difference(const RandomProgram& program, const std::vector<Word32>& got,
                       const std::vector<Word32>& expected);

}  // namespace kernwright::sim
