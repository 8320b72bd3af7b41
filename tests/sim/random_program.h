// Random PTX programs of straight lines, branches and loops, with an interpreter of their own: one
// thread at a time, one instruction at a time, on the host's arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kernwright::sim {

/// A kernel `random_program(in, out)`: each thread reads kInputs words of `in`, computes, and
/// writes kOutputs words to `out`. The same seed gives the same program everywhere.
class RandomProgram {
 public:
  static constexpr unsigned kInputs = 8, kOutputs = 16;

  explicit RandomProgram(std::uint64_t seed);
  ~RandomProgram();
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  std::string ptx() const;
  /// What `threads` threads write.
  std::vector<std::uint32_t> expected(const std::vector<std::uint32_t>& input,
                                      unsigned threads) const;
  /// Edge values and random ones for `threads` threads.
  static std::vector<std::uint32_t> input(std::uint64_t seed, unsigned threads);

 private:
  struct Node;
  class Maker;
  std::vector<Node> body_;
};

}  // namespace kernwright::sim
