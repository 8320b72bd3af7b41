// Programs made from the ISA table: every opcode of the instructions that compute on registers, on
// edge values and random ones, in full warps and under a predicate.
#pragma once

#include "sim/ptx/isa.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// One opcode ("setp.lt.and.s32") and the row that it comes from.
struct RowForm {
  std::string opcode;
  const ptx::IsaRow* row = nullptr;

  /// Whether the manual gives a bound on its error instead of its bits.
  bool is_approximate() const;
};

/// Every opcode that the pattern of a row stands for.
std::vector<std::string> spellings(const ptx::IsaRow& row);

/// Every opcode of every row that reads and writes registers alone, once each, in table order:
/// all but moves (which have rules of their own) and `activemask` (which depends on the schedule).
std::vector<RowForm> row_forms();

/// Kernels `rows_0`, `rows_1`, ... of (in, out) for some forms, kFormsPerKernel in each. Thread t
/// of kThreads reads four 64-bit words at in[4 * t]. Form i of a kernel writes kVariants words:
/// out[(i * kVariants + variant) * kThreads + t].
class RowProgram {
 public:
  static constexpr unsigned kThreads = 2048, kBlock = 128;
  static constexpr unsigned kVariants =
      3;  ///< all lanes; some lanes; all with `!p` or as the first
  static constexpr unsigned kFormsPerKernel = 64;

  explicit RowProgram(std::span<const RowForm> forms) : forms_(forms) {}
  std::string ptx(std::string_view target) const;
  std::size_t kernel_count() const {
    return (forms_.size() + kFormsPerKernel - 1) / kFormsPerKernel;
  }
  static std::vector<std::uint64_t> input();
  /// A hash of what one form wrote. The payload of a NaN does not count in double precision, where
  /// PTX leaves it open which of several operands gives it, nor in abs.f32 and neg.f32, which
  /// assemblers translate to an addition or to a change of the sign bit alone.
  static std::uint64_t hash(const RowForm& form, std::span<const std::uint64_t> words);

 private:
  std::span<const RowForm> forms_;
};

}  // namespace kernwright::sim
