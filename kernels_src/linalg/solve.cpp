// Launches elimination, substitution and Cholesky's factors.
#include "kernels_src/linalg/solve.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/linalg/batches.h"
#include "kernels_src/linalg/lu.cu.h"
#include "kernels_src/operands.h"

#include <algorithm>

namespace kernwright::kernels {

namespace {

const Family& lu_family() {
  static const auto& family = *new Family("lu.cu", text::lu_cu);
  return family;
}

}  // namespace

Lu lu_factor(const Array& x, const Stream& stream) {
  const MatrixBatch batch(x, "lu_factor", stream);
  batch.require_square("lu_factor");
  const int n = batch.rows();
  Lu made{batch.row_major(), batch.make({n}, ScalarType::int32), batch.make({}, ScalarType::int32)};
  if (batch.count() == 0) return made;
  const std::uint32_t shared = batch.shared_bytes(std::int64_t{n} * n, batch.type());
  launch(batch.kernel(lu_family(), 0, "lu_factor"), batch.blocks(n, shared), made.factors.address(),
         made.pivots.address(), made.info.address(), n, shared > 0);
  return made;
}

Array lu_solve(const Lu& lu, const Array& sides, const Stream& stream) {
  const MatrixBatch batch(sides, "lu_solve", stream);
  require_one_device(lu.factors, "factors", sides, "sides");
  Shape expected = sides.shape();
  expected.back() = batch.rows();
  if (lu.factors.shape() != expected || lu.factors.type() != sides.type() ||
      lu.pivots.type() != ScalarType::int32 || lu.pivots.size() != batch.count() * batch.rows()) {
    throw InvalidArgument(format("Incompatible dimensions: factors are a {}, right sides a {}",
                                 lu.factors.identify(), sides.identify()));
  }
  Array x = batch.row_major();
  if (x.size() == 0) return x;
  const Array factors = contiguous(lu.factors, stream), pivots = contiguous(lu.pivots, stream);
  const int n = batch.rows(), columns = batch.columns();
  std::uint32_t across = 1;
  while (across < 32 && across < static_cast<std::uint32_t>(columns)) across *= 2;
  const std::uint32_t down = std::max((n <= 32 ? 64u : 256u) / across, 1u);
  const int tiles = static_cast<int>((columns - 1) / static_cast<int>(across)) + 1;
  launch(batch.kernel(lu_family(), 1, "lu_solve"), batch.blocks(tiles, Dim3{across, down}),
         factors.address(), pivots.address(), x.address(), n, columns, tiles);
  factors.use_on(batch.stream());
  pivots.use_on(batch.stream());
  return x;
}

Cholesky cholesky(const Array& x, const Stream& stream) {
  const MatrixBatch batch(x, "cholesky", stream);
  batch.require_square("cholesky");
  const int n = batch.rows();
  Cholesky made{batch.row_major(), batch.make({}, ScalarType::int32)};
  if (batch.count() == 0) return made;
  const std::uint32_t shared = batch.shared_bytes(std::int64_t{n} * n, batch.type());
  launch(batch.kernel(lu_family(), 2, "cholesky"), batch.blocks(n, shared), made.lower.address(),
         made.info.address(), n, shared > 0);
  return made;
}

}  // namespace kernwright::kernels
