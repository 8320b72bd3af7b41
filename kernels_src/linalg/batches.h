// Shared by the solvers: checks, batches of matrices, launches of one block a matrix.
#pragma once

#include "array/array.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"
#include "kernels_src/family.h"

#include <cstdint>

namespace kernwright::kernels {

/// A call over all matrices [rows, columns] of an array, on one stream.
class MatrixBatch {
 public:
  /// Throws ArgumentError unless the elements are float32, float64, complex64 or complex128, and
  /// InvalidArgument for less than two dimensions and for more matrices than a grid has blocks.
  MatrixBatch(const Array& array, const char* function, const Stream& stream);

  std::int64_t count() const noexcept { return count_; }
  int rows() const noexcept { return rows_; }
  int columns() const noexcept { return columns_; }
  ScalarType type() const noexcept { return array_.type(); }
  ScalarType real_type() const noexcept;
  ScalarType complex_type() const noexcept;
  Device& device() const { return array_.device(); }
  const Stream& stream() const noexcept { return on_; }
  /// Throws InvalidArgument unless the matrices are square.
  void require_square(const char* function) const;

  /// The matrices in memory of their own: row-major, or each column-major.
  Array row_major() const;
  Array column_major() const;
  /// New memory: `tail` of it for each matrix.
  Array make(const Shape& tail, ScalarType type) const;
  Array make(const Shape& tail) const { return make(tail, type()); }

  /// Bytes of shared memory for `elements` of a matrix, or 0 where it stays where it is.
  std::uint32_t shared_bytes(std::int64_t elements, ScalarType type) const noexcept;
  /// One block a matrix, as wide as `extent` asks for.
  LaunchConfig blocks(int extent, std::uint32_t shared_bytes = 0) const;
  /// `tiles` blocks a matrix. Throws InvalidArgument where a grid has not as many.
  LaunchConfig blocks(std::int64_t tiles, Dim3 block) const;
  /// `name`<type`rest`>; `number` tells the kernels of a family apart.
  const Kernel& kernel(const Family& family, int number, const char* name,
                       const char* rest = "") const;

 private:
  Array array_;
  Stream on_;
  Shape batch_;
  std::int64_t count_ = 1;
  int rows_ = 0, columns_ = 0;
};

/// The last two axes exchanged: a view.
Array swapped(const Array& matrices);

}  // namespace kernwright::kernels
