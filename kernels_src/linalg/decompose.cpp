// Plans the steps of each decomposition.
#include "kernels_src/linalg/decompose.h"

#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/linalg/batches.h"
#include "kernels_src/linalg/hermitian.cu.h"
#include "kernels_src/linalg/householder.cu.h"
#include "kernels_src/linalg/jacobi.cu.h"
#include "kernels_src/linalg/schur.cu.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {

namespace {

const Family& householder_family() {
  static const auto& family = *new Family("householder.cu", text::householder_cu);
  return family;
}
const Family& hermitian_family() {
  static const auto& family = *new Family("hermitian.cu", text::hermitian_cu);
  return family;
}
const Family& jacobi_family() {
  static const auto& family = *new Family("jacobi.cu", text::jacobi_cu);
  return family;
}
const Family& schur_family() {
  static const auto& family = *new Family("schur.cu", text::schur_cu);
  return family;
}

constexpr int kColumnWarps = 4;  // of a block, each with a column of its own

std::int64_t column_tiles(int columns) { return ceil_div(columns, kColumnWarps); }

/// Column-major matrices with the reflections of Q below their diagonals.
struct Reflected {
  Array matrices, taus;
  int rows = 0, columns = 0, steps = 0;
  int offset = 0;  ///< how far below the diagonal they begin
};

Reflected reflect_to_triangle(const MatrixBatch& batch, Array matrices, int rows, int columns) {
  const int steps = std::min(rows, columns);
  Reflected made{std::move(matrices), batch.make({steps}), rows, columns, steps};
  if (batch.count() == 0 || steps == 0) return made;
  const std::uint32_t shared = batch.shared_bytes(std::int64_t{rows} * columns, batch.type());
  launch(batch.kernel(householder_family(), 0, "qr_factor"), batch.blocks(rows, shared),
         made.matrices.address(), made.taus.address(), rows, columns, shared > 0);
  return made;
}

/// The first columns of Q, column-major.
Array form_q(const MatrixBatch& batch, const Reflected& from, int columns, bool is_signed = false) {
  Array q = batch.make({columns, from.rows});
  if (q.size() == 0) return q;
  const std::int64_t tiles = column_tiles(columns);
  launch(batch.kernel(householder_family(), 1, "form_q"),
         batch.blocks(tiles, Dim3{32 * kColumnWarps}), from.matrices.address(), from.taus.address(),
         q.address(), from.rows, from.columns, from.steps, from.offset, columns,
         static_cast<int>(tiles), is_signed);
  return q;
}

/// The upper triangle, row-major.
Array upper_triangle(const MatrixBatch& batch, const Reflected& from, int rows) {
  Array r = batch.make({rows, from.columns});
  if (r.size() == 0) return r;
  const std::int64_t blocks = std::min<std::int64_t>((r.size() + 255) / 256, 1 << 16);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(blocks)}, .block = {256}, .stream = batch.stream()};
  launch(batch.kernel(householder_family(), 2, "qr_upper"), config, from.matrices.address(),
         r.address(), static_cast<long long>(r.size()), from.rows, from.columns, rows);
  return r;
}

/// Column-major matrices divided by a power of two each.
struct Scaled {
  Array matrices, scales;
};
Scaled fill_columns(const MatrixBatch& batch, const Array& x, bool hermitian) {
  const int n = batch.rows();
  const Array rows = x.is_contiguous() ? x : batch.row_major();
  Scaled made{batch.make({n, n}), batch.make({}, batch.real_type())};
  launch(batch.kernel(householder_family(), 3, "fill_columns"), batch.blocks(n), rows.address(),
         made.matrices.address(), made.scales.address(), n, hermitian);
  rows.use_on(batch.stream());
  return made;
}

/// Column-major results as row-major arrays.
Array by_rows(const MatrixBatch& batch, const Array& columns) {
  return copy(swapped(columns), batch.stream());
}

}  // namespace

Qr qr(const Array& x, bool complete, const Stream& stream) {
  const MatrixBatch batch(x, "qr", stream);
  const int m = batch.rows(), n = batch.columns(), rows = complete ? m : std::min(m, n);
  const Reflected reflected = reflect_to_triangle(batch, batch.column_major(), m, n);
  const Array q = form_q(batch, reflected, rows);
  return {by_rows(batch, q), upper_triangle(batch, reflected, rows)};
}

Svd svd(const Array& x, bool vectors, bool full, const Stream& stream) {
  const MatrixBatch batch(x, "svd", stream);
  // Wide matrices are decomposed as their transpose: it has the same memory, the other way round.
  const bool wide = batch.rows() < batch.columns();
  const int m = std::max(batch.rows(), batch.columns()),
            n = std::min(batch.rows(), batch.columns());
  const Array a = wide ? batch.row_major() : batch.column_major();
  Svd made{{}, batch.make({n}, batch.real_type()), {}};
  const Array none = batch.make({0});
  const Array basis = vectors ? batch.make({n, n}) : none;
  const Array right = vectors ? batch.make({n, n}) : none;
  const Array left = vectors ? batch.make({n, m}) : none;
  if (batch.count() > 0 && n > 0) {
    const Array norms = batch.make({n}, batch.real_type());
    const Kernel& kernel = vectors ? batch.kernel(jacobi_family(), 0, "jacobi", ", true")
                                   : batch.kernel(jacobi_family(), 1, "jacobi", ", false");
    launch(kernel, batch.blocks(std::min(4 * n, 1024)), a.address(), basis.address(),
           made.s.address(), norms.address(), left.address(), right.address(), m, n);
  }
  if (!vectors) return made;
  const Reflected reflected = reflect_to_triangle(batch, left, m, n);
  const Array longer = form_q(batch, reflected, full ? m : n, true);
  // `right` holds conj(V) by columns, which are the rows of V^H.
  made.u = by_rows(batch, wide ? right : longer);
  made.vh = wide ? longer : right;
  return made;
}

Eigen eigh(const Array& x, bool vectors, const Stream& stream) {
  const MatrixBatch batch(x, "eigh", stream);
  batch.require_square("eigh");
  const int n = batch.rows();
  Eigen made{batch.make({n}, batch.real_type()), {}};
  if (vectors) made.vectors = batch.make({n, n});
  if (x.size() == 0) return made;
  const Scaled scaled = fill_columns(batch, x, true);
  const Reflected reflected{scaled.matrices, batch.make({n - 1}), n, n, n - 1, 1};
  const Array diagonal = batch.make({n}, batch.real_type());
  const Array beside = batch.make({n}, batch.real_type());
  const Array products = batch.make({n});
  launch(batch.kernel(householder_family(), 4, "tridiagonal"), batch.blocks(n),
         scaled.matrices.address(), reflected.taus.address(), diagonal.address(), beside.address(),
         products.address(), n);
  const Array basis = vectors ? form_q(batch, reflected, n) : batch.make({0});
  const Array turned = vectors ? batch.make({n, n}) : basis;
  const Array rotations = batch.make({2 * n}, batch.real_type());
  const std::uint32_t shared = batch.shared_bytes(std::int64_t{4} * n, batch.real_type());
  const Kernel& kernel = vectors ? batch.kernel(hermitian_family(), 0, "tridiagonal_ql", ", true")
                                 : batch.kernel(hermitian_family(), 1, "tridiagonal_ql", ", false");
  launch(kernel, batch.blocks(n, shared), diagonal.address(), beside.address(), rotations.address(),
         scaled.scales.address(), basis.address(), made.values.address(), turned.address(), n,
         shared > 0);
  if (vectors) made.vectors = by_rows(batch, turned);
  return made;
}

Eigen eig(const Array& x, bool vectors, const Stream& stream) {
  const MatrixBatch batch(x, "eig", stream);
  batch.require_square("eig");
  const int n = batch.rows();
  Eigen made{batch.make({n}, batch.complex_type()), {}};
  if (vectors) made.vectors = batch.make({n, n}, batch.complex_type());
  if (x.size() == 0) return made;
  const Scaled scaled = fill_columns(batch, x, false);
  const Reflected reflected{scaled.matrices, batch.make({n - 1}), n, n, n - 1, 1};
  const Array below = batch.make({n - 1});
  launch(batch.kernel(householder_family(), 5, "hessenberg"), batch.blocks(n),
         scaled.matrices.address(), reflected.taus.address(), below.address(), n);
  const Array basis = vectors ? form_q(batch, reflected, n) : batch.make({0});
  const Kernel& kernel = vectors ? batch.kernel(schur_family(), 0, "schur", ", true")
                                 : batch.kernel(schur_family(), 1, "schur", ", false");
  launch(kernel, batch.blocks(std::min(n, 128)), scaled.matrices.address(), below.address(),
         scaled.scales.address(), basis.address(), made.values.address(), n);
  if (!vectors) return made;
  const Array work = batch.make({n, n}, batch.complex_type());
  const Array columns = batch.make({n, n}, batch.complex_type());
  const std::int64_t tiles = column_tiles(n);
  launch(batch.kernel(schur_family(), 2, "schur_vectors"),
         batch.blocks(tiles, Dim3{32 * kColumnWarps}), scaled.matrices.address(), basis.address(),
         work.address(), columns.address(), n, static_cast<int>(tiles));
  made.vectors = by_rows(batch, columns);
  return made;
}

}  // namespace kernwright::kernels
