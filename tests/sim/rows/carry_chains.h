// Instructions that hand a carry or borrow on: chains of them, their kernels, and what must come
// out.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

struct ChainStep {
  enum class Kind : std::uint8_t { add, sub, mad_lo, mad_hi, other };  ///< other: no carry
  Kind kind = Kind::add;
  bool reads = false, sets = false;  ///< the carry
  int bits = 32;
  bool is_signed = false;

  std::string opcode() const;
};

struct CarryChain {
  std::vector<ChainStep> steps;
  /// The opcodes, joined by '+': no opcode of a row has one.
  std::string name() const;
};

/// Sums, differences and products of several words, mixtures of them and of widths, and chains with
/// other instructions in between, for each type.
std::vector<CarryChain> carry_chains();

/// Kernels `chains_0`, ... of (in, out) for some chains. The input is RowProgram's; step i takes
/// words i, i + 1 and i + 2 of the thread's four. A chain writes kVariants times kSteps words for
/// each thread.
class ChainProgram {
 public:
  static constexpr unsigned kSteps = 4;     ///< at most
  static constexpr unsigned kVariants = 3;  ///< all lanes; some; all but for the first step
  static constexpr unsigned kChainsPerKernel = 16;

  explicit ChainProgram(std::span<const CarryChain> chains) : chains_(chains) {}
  std::string ptx(std::string_view target) const;

 private:
  std::span<const CarryChain> chains_;
};

/// What a chain writes, in the order of its memory.
std::vector<std::uint64_t> expected_words(const CarryChain& chain);

/// Runs `image` (PTX or what an assembler made of it) in the current context: each chain's words.
std::vector<std::vector<std::uint64_t>> run_chains(const DriverApi& api, const void* image,
                                                   std::span<const CarryChain> chains);

/// The line of row_vectors.txt.
std::string chain_line(std::span<const std::uint64_t> words);

}  // namespace kernwright::sim
