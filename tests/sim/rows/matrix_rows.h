// Programs made from the ISA table: every opcode of mma and mma.sp, on factors whose sums are exact
// whatever their order and width. The results of a GPU lie in matrix_vectors.txt, a line for each
// form as in row_vectors.txt.
#pragma once

#include "driver/driver_api.h"
#include "sim/ptx/isa.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// One opcode, and of sparse ones the selector.
struct MatrixForm {
  std::string opcode;
  const ptx::IsaRow* row = nullptr;
  int selector = -1;  ///< of mma.sp

  /// The opcode, and behind it ", selector N".
  std::string name() const;
};

/// Every opcode of every row of mma, in table order; sparse ones with each selector that they take.
std::vector<MatrixForm> matrix_forms();

/// Kernels `matrix_0`, `matrix_1`, ... of (in, out), one for each form. One warp computes one
/// product; thread t writes register r of D to the word out[r * kThreads + t].
class MatrixProgram {
 public:
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kResults = 8;  ///< registers of D at most

  static std::string ptx(std::span<const MatrixForm> forms, std::string_view target);
  static std::vector<std::uint64_t> input();
};

/// Runs the program of `forms` from `image` (its PTX, or what an assembler made of it) in the
/// current context and returns the hash of each form, 16 digits.
std::vector<std::string> run_matrices(const DriverApi& api, const void* image,
                                      std::span<const MatrixForm> forms);

}  // namespace kernwright::sim
