// Cuts operands down to two or three dimensions for the products with few rows.
#include "kernels_src/products/linear.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/product_choices.h"
#include "kernels_src/gemv/skinny.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/matmul.h"
#include "kernels_src/quantize/quantize.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kFewLinearElements =
    16384;  ///< of weights, below which matmul() does as well
constexpr std::int64_t kLinearFloatRows =
    12;  ///< of float32: with more, fma_gemm.cu is faster (H100)

bool is_skinny_type(ScalarType type) { return is_half(type) || type == ScalarType::float32; }

/// `array` as `shape`: a view where the strides allow, else a copy.
Array reshaped_for_rows(const Array& array, Shape shape, const Stream& stream) {
  const std::size_t size = scalar_size(array.type());
  if (reshape_strides(array.shape(), array.strides(), shape, size))
    return array.reshape(std::move(shape));
  return copy(array, stream).reshape(std::move(shape));
}

bool can_reshape_for_rows(const Array& array, const Shape& shape) {
  return reshape_strides(array.shape(), array.strides(), shape, scalar_size(array.type()))
      .has_value();
}

[[noreturn]] void refuse_linear(const LinearCall& call, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for linear(): x is a {}, weight a {}; {}",
             call.x.identify(), call.weights.identify(), what));
}

/// The shape of the result.
Shape check_linear(const LinearCall& call) {
  require_one_device(call.x, "x", call.weights, "weight");
  if (call.weights.ndim() != 2 || call.x.ndim() < 1)
    refuse_linear(call, "weight has 2 dimensions, x 1 or more");
  if (call.x.shape().back() != call.weights.shape()[1])
    refuse_linear(call, "their last dimensions must be equal");
  const ScalarType type = call.x.type(), weight = call.weights.type();
  if (!is_skinny_type(type) && type != ScalarType::float64)
    refuse_linear(call, "x must be float16, bfloat16, float32 or float64");
  const bool narrow = is_narrow_weight(weight);
  if (weight != type && !(narrow && is_skinny_type(type)))
    refuse_linear(
        call, "weight must have x's dtype, or be int8, float8_e4m3fn or float8_e5m2 with a scale");
  if (call.tf32 && type != ScalarType::float32)
    refuse_linear(call, "tf32 is a precision of float32");
  if (call.scale.has_value() != narrow)
    refuse_linear(call, "weights of 8 bits have a scale, others have none");
  Shape result = call.x.shape();
  result.back() = call.weights.shape()[0] / (call.gate ? 2 : 1);
  return result;
}

/// a + b, in `out` where that is given.
Array add_to_linear(const Array& a, const Array& b, const Stream& stream,
                    const std::optional<Array>& out = {}) {
  const std::array<Operand, 2> operands = {Operand{&a}, Operand{&b}};
  if (!out) return elementwise(Operation::add, operands, stream);
  elementwise_into(*out, Operation::add, operands, stream);
  return *out;
}

/// `out` where kernels can write there. Throws InvalidArgument for one that does not fit.
std::optional<Array> linear_target(const LinearCall& call, const Shape& shape,
                                   const Stream& stream) {
  const ResultForm form{"linear", call.x.device(), shape, call.x.type()};
  std::optional<Array> target = direct_target(call.out, form, stream);
  require_apart(call.out, form,
                {{"x", &call.x},
                 {"weight", &call.weights},
                 {"bias", pointer_of(call.bias)},
                 {"scale", pointer_of(call.scale)}});
  require_apart_or_same(call.out, form, {{"residual", pointer_of(call.residual)}});
  return target;
}

/// With x as (rows, k), the residual and memory for (rows, n): one kernel where the tensor cores
/// take it, unless a residual comes behind an activation; else in steps. A residual that is added
/// last goes to `sums`.
Array linear_of_many(const LinearCall& call, const Array& x, const std::optional<Array>& target,
                     const std::optional<Array>& residual, const std::optional<Array>& sums,
                     const Stream& stream) {
  Array weights = call.weights;
  if (call.scale) {
    const Array scale = call.scale->size() == 1 ? call.scale->reshape({}) : *call.scale;
    weights = dequantize_rows(weights, scale, x.type(), stream);
  }
  const Array turned_weights = weights.transpose();
  // Nothing follows a Gemm of float64.
  if (call.gate || call.tf32 || takes_tiles(x, turned_weights) ||
      (is_skinny_type(x.type()) && planned_tiles(x, turned_weights))) {
    GemmEpilogue then{.bias = call.bias, .activation = call.activation, .gate = call.gate};
    const bool adds_last = residual && call.activation;
    if (!adds_last) then.c = residual;
    const Array result =
        Gemm{.a = x, .b = turned_weights, .epilogue = then, .tf32 = call.tf32, .out = target}.run(
            stream);
    return adds_last ? add_to_linear(result, *residual, stream, sums) : result;
  }
  Array result = matmul(x, turned_weights, stream);
  if (call.bias && call.activation) {
    result = bias_activate(*call.activation, result, *call.bias, stream);
  } else if (call.bias) {
    result = add_to_linear(result, *call.bias, stream);
  } else if (call.activation) {
    result = activate(*call.activation, result, stream);
  }
  return residual ? add_to_linear(result, *residual, stream, sums) : result;
}

/// Whether all of the dimensions in front are the same, so that they can be one.
bool same_linear_batches(const Array& a, const Array& b) {
  return a.ndim() == b.ndim() &&
         std::equal(a.shape().begin(), a.shape().end() - 2, b.shape().begin(), b.shape().end() - 2);
}

/// The last two dimensions exchanged.
Array linear_turned(const Array& array) {
  std::array<int, 3> axes = {0, 2, 1};
  if (array.ndim() == 2) return array.transpose();
  return array.transpose(axes);
}

/// As (batch, rows, columns), or nothing where only a copy could be that.
std::optional<Array> as_linear_batch(const Array& array) {
  const Shape& shape = array.shape();
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const Shape wanted = {rows * columns == 0 ? 0 : array.size() / (rows * columns), rows, columns};
  if (array.ndim() == 3) return array;
  if (!can_reshape_for_rows(array, wanted)) return std::nullopt;
  return array.reshape(wanted);
}

constexpr std::int64_t kTileRows = 32;       ///< of x, with more: tiles
constexpr std::int64_t kMisalignedRows = 8;  ///< the same where b is misaligned
constexpr std::int64_t kFewTileRows = 16;    ///< the same for so many columns of b:
constexpr std::int64_t kManyTileColumns = 12288;
constexpr std::int64_t kTileColumns = 1024;                    ///< of b, at least
constexpr std::int64_t kTileElements = std::int64_t{1} << 22;  ///< of b, at least

/// Whether lines of b, which are dense, begin elsewhere than at multiples of 16 bytes. Kernels for
/// few rows then load element by element.
bool is_misaligned(const Array& b) {
  const auto dense = static_cast<std::int64_t>(scalar_size(b.type()));
  const int line = b.strides()[0] == dense ? 1 : 0;
  const bool lies_dense = b.strides()[static_cast<std::size_t>(1 - line)] == dense;
  return lies_dense &&
         (b.strides()[static_cast<std::size_t>(line)] % 16 != 0 || b.address() % 16 != 0);
}

/// Whether tiles of 64 rows (gemm.cu) are faster: with more than some rows of x and a large b
/// (k, n), each column of which lies in one piece that tensor maps can describe. Of a misaligned b
/// tiles read an aligned copy: with 64 rows that took an eighth of the time. Measured on an H200; a
/// table's plan comes first.
bool prefers_tiles(const Array& x, std::int64_t rows, const Array& b) {
  const std::int64_t k = b.shape()[0], n = b.shape()[1];
  const bool halves = is_half(x.type()) && x.type() == b.type() &&
                      x.device().capabilities().wgmma &&
                      !product_plan(x.device(), product_key(x, b, x.type()));
  if (!halves || rows > kSkinnyRows) return false;
  if (is_misaligned(b)) return rows > kMisalignedRows;
  if (rows <= (n >= kManyTileColumns ? kFewTileRows : kTileRows)) return false;
  return n >= kTileColumns && n * k >= kTileElements &&
         b.strides()[0] == static_cast<std::int64_t>(scalar_size(b.type()));
}

/// x of few rows, any dimensions in front, times b of two.
Array few_rows_times_matrix(const Array& a, const Array& b, std::int64_t rows,
                            const Stream& stream) {
  const Array x = reshaped_for_rows(a, {rows, a.shape().back()}, stream);
  Shape shape = a.shape();
  shape.back() = b.shape()[1];
  return skinny_product({.x = x, .weights = b.transpose()}, stream).reshape(std::move(shape));
}

}  // namespace

void require_like_linear_result(const Array& x, const std::optional<Array>& extra, const char* name,
                                const Shape& shape) {
  if (!extra) return;
  require_one_device(x, "x", *extra, name);
  if (extra->shape() == shape && extra->type() == x.type()) return;
  throw InvalidArgument(format(
      "Incompatible dimensions or dtypes for linear(): {} is a {}, and must be {} of shape {}",
      name, extra->identify(), scalar_name(x.type()), shape_to_string(shape)));
}

Array linear(const LinearCall& call, const Stream& stream) {
  const Shape shape = check_linear(call);
  const std::int64_t k = call.x.shape().back(), n = shape.back();
  if (!call.gate) require_like_linear_result(call.x, call.bias, "bias", {n});
  require_like_linear_result(call.x, call.residual, "residual", shape);
  if (call.scale && call.scale->size() != 1)
    if (call.scale->shape() != Shape{n}) refuse_linear(call, "scale has one number, or one a row");
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < call.x.ndim(); ++d) rows *= shape[static_cast<std::size_t>(d)];
  std::optional<Array> target = linear_target(call, shape, stream);
  if (target) target = target->reshape({rows, n});
  const Array x = reshaped_for_rows(call.x, {rows, k}, stream);
  const std::int64_t most =
      call.x.type() == ScalarType::float32 && !call.scale ? kLinearFloatRows : kSkinnyRows;
  const bool many = call.gate || rows > most || !is_skinny_type(call.x.type()) || n > (1 << 25);
  const auto by_tiles = [&] {
    const Array b = call.weights.transpose();
    return planned_tiles(x, b) || (!call.residual && prefers_tiles(x, rows, b));
  };
  if (many || (!call.scale && by_tiles())) {
    const std::optional<Array> sums = target;
    // A product must not overwrite a residual of which it still reads other elements.
    if (target && call.residual && may_overlap(*target, *call.residual)) target.reset();
    std::optional<Array> residual;
    if (call.residual) residual = reshaped_for_rows(*call.residual, {rows, n}, stream);
    const Array result = linear_of_many(call, x, target, residual, sums, stream);
    return deliver(call.out, result.reshape(shape), stream);
  }
  SkinnyCall skinny{.x = x, .weights = call.weights};
  skinny.scale = call.scale;
  skinny.bias = call.bias;
  skinny.activation = call.activation;
  if (call.residual) skinny.residual = reshaped_for_rows(*call.residual, {rows, n}, stream);
  skinny.out = target;
  return deliver(call.out, skinny_product(skinny, stream).reshape(shape), stream);
}

std::optional<Array> few_rows_product(const Array& a, const Array& b, const Stream& stream) {
  const Shape &left = a.shape(), &right = b.shape();
  const std::int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  const std::int64_t most = a.type() == ScalarType::float32 ? kLinearFloatRows : kSkinnyRows;
  if (!is_skinny_type(a.type()) || a.size() == 0 || b.size() == 0) return std::nullopt;
  if (k > (1 << 30) || std::max(m, n) > (1 << 25)) return std::nullopt;
  const std::int64_t rows = a.size() / k;
  if (b.ndim() == 2 && rows <= most && n * k >= kFewLinearElements) {
    if (prefers_tiles(a, rows, b)) return std::nullopt;
    return few_rows_times_matrix(a, b, rows, stream);
  }
  if (b.ndim() == 2 && a.ndim() == 2 && n == 1 && m * k >= kFewLinearElements) {
    // The one column is the row of x, and a holds the weights.
    return skinny_product({.x = b.transpose(), .weights = a}, stream).reshape({m, 1});
  }
  if (!same_linear_batches(a, b) || a.ndim() < 3) return std::nullopt;
  const bool few = m <= most && n * k >= kFewLinearElements;
  if (!few && (n != 1 || m * k < kFewLinearElements)) return std::nullopt;
  const std::optional<Array> x = as_linear_batch(a), y = as_linear_batch(b);
  if (!x || !y) return std::nullopt;
  Shape shape = left;
  shape.back() = n;
  const SkinnyCall call = few ? SkinnyCall{.x = *x, .weights = linear_turned(*y)}
                              : SkinnyCall{.x = linear_turned(*y), .weights = *x};
  return skinny_product(call, stream).reshape(std::move(shape));
}

}  // namespace kernwright::kernels
