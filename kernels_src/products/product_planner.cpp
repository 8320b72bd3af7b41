// Plans of products: the table first, then few rows, tiles, the kernel of all types.
#include "kernels_src/products/product_planner.h"

#include "core/device.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/packed/packed_plan.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/products/product_choices.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

constexpr double kLeastProducts = 1 << 20;   ///< multiplications that go to the tensor cores
constexpr std::int64_t kTileRows = 32;       ///< of x, with more: tiles
constexpr std::int64_t kMisalignedRows = 8;  ///< of x, where b is misaligned
constexpr std::int64_t kFewTileRows = 16;    ///< of x, for so many columns of b:
constexpr std::int64_t kManyTileColumns = 12288;
constexpr std::int64_t kTileColumns = 1024;                    ///< of b, at least
constexpr std::int64_t kTileElements = std::int64_t{1} << 22;  ///< of b, at least
// Or a small b whose columns are short (float16 37x768x768 on an H200: 5.3 -> 2.7 us).
constexpr std::int64_t kSmallTileColumns = 768, kShortTileInner = 2048;
constexpr std::int64_t kSmallTileElements = std::int64_t{1} << 19;

/// Whether lines of dense elements, a stride apart, begin at multiples of `unit` bytes.
bool is_aligned(const Array& array, std::int64_t stride, std::int64_t unit) {
  return stride % unit == 0 && array.address() % static_cast<std::uint64_t>(unit) == 0;
}

/// Rows of a up to which skinny_staged.cu reads a, and b in dense columns, in parts of 16 bytes
/// faster than tiles read aligned copies (on an H200, bfloat16 9x10524x10524: 178 -> 79 us).
std::int64_t staged_rows(const Array& a, const Array& b) {
  const auto element = static_cast<std::int64_t>(scalar_size(b.type()));
  const bool dense = a.ndim() == 2 && a.strides()[1] == element;
  const auto fits = [&](std::int64_t unit) {
    return dense && b.shape()[0] * element % unit == 0 && is_aligned(a, a.strides()[0], unit) &&
           is_aligned(b, b.strides()[1], unit);
  };
  return fits(2 * kLeastStagedCopy) ? kSkinnyRows : fits(kLeastStagedCopy) ? kSkinnyRows / 2 : 0;
}

/// Whether tiles of 64 rows (gemm.cu) are faster for few rows: with more than some rows of x and a
/// large b (k, n) in dense columns. Tiles read an aligned copy of a misaligned b: with 64 rows that
/// took an eighth of the time. Measured on an H200; a table's plan comes first.
bool prefers_tiles(const Device& device, const ProductRequest& request) {
  const ProductKey& key = request.key;
  if (!is_half(key.a) || key.a != key.b || !device.capabilities().wgmma) return false;
  if (request.misaligned) return key.rows > std::max(kMisalignedRows, request.staged_rows);
  const std::int64_t elements = key.columns * key.inner;
  if (request.columns_dense && key.rows > kTileRows && key.columns >= kSmallTileColumns &&
      elements >= kSmallTileElements && key.inner <= kShortTileInner) {
    return true;
  }
  if (key.rows <= (key.columns >= kManyTileColumns ? kFewTileRows : kTileRows)) return false;
  return request.columns_dense && key.columns >= kTileColumns && elements >= kTileElements;
}

/// Tiles of the best kernel that the device and the types have. Gemm goes on to the next kernel
/// where a layout does not fit.
ProductPlan tiles(const Device& device, const ProductKey& key) {
  const bool exact = key.a == ScalarType::float64 || key.a == ScalarType::float32;
  if (exact && key.accumulation == ProductAccumulation::plain) return FmaPlan{};
  if (device.capabilities().wgmma) return WgmmaPlan{};
  return MmaPlan{};
}

/// Whether tiles pay for the compilation of a kernel of many instructions.
bool takes_tiles(const Device& device, const ProductRequest& request) {
  const ProductKey& key = request.key;
  if (request.use == ProductUse::tiles || key.accumulation != ProductAccumulation::plain)
    return true;
  if (key.a == ScalarType::float32 || key.a == ScalarType::float64) return has_fma(device, key.a);
  const bool has_tiles = is_half(key.a) || key.a == ScalarType::int8;
  return has_tiles && key.a == key.b && has_mma(device, key.a) &&
         request.multiplications >= kLeastProducts;
}

/// A kernel that reads the packed weights; without one, products by numbers of x's type.
ProductPlan plan_packed_product(const Device& device, const ProductRequest& request) {
  const ProductKey& key = request.key;
  const bool reads = key.rows <= kPackedRows && is_half(key.a) && key.columns <= (1 << 25) &&
                     device.compute_capability().major >= 8;
  if (!reads) return PlainPlan{};
  return PackedPlan{
      plan_packed(*request.packed, key.rows, request.packed_wanted, packed_device(device))};
}

/// How a product accumulates, where the types leave a choice.
ProductAccumulation product_accumulation(const Gemm& gemm) {
  if (gemm.tf32) return ProductAccumulation::tf32;
  if (!is_float8(gemm.a.type())) return ProductAccumulation::plain;
  if (gemm.block_scales) return ProductAccumulation::blocks;
  return gemm.fast_accum ? ProductAccumulation::plain : ProductAccumulation::promoted;
}

}  // namespace

ProductRequest product_request(const Array& a, const Array& b, ScalarType out, ProductUse use) {
  ProductRequest request{.key = product_key(a, b, out), .use = use};
  const std::int64_t inner = request.key.inner;
  if (inner > 0) {
    const auto rows = static_cast<double>(a.size()) / static_cast<double>(inner);
    request.multiplications = rows * static_cast<double>(b.size());
  }
  if (b.ndim() == 2) {
    const auto element = static_cast<std::int64_t>(scalar_size(b.type()));
    const Shape& strides = b.strides();
    request.columns_dense = strides[0] == element;
    const std::int64_t line = strides[request.columns_dense ? 1 : 0];
    const bool dense = request.columns_dense || strides[1] == element;
    request.misaligned = dense && !is_aligned(b, line, 16);
    if (request.misaligned && request.columns_dense) request.staged_rows = staged_rows(a, b);
  }
  return request;
}

ProductPlan plan_product(const Device& device, const ProductRequest& request) {
  if (request.packed != nullptr) return plan_packed_product(device, request);
  if (PlannedRowsScope::current() && request.few) return SkinnyPlan{};
  const ProductRow tuned = tuned_product(device, request.key);
  const bool is_skinny = tuned && std::holds_alternative<SkinnyPlan>(*tuned);
  if (tuned && (request.few ? is_skinny || !request.skinny_only : !is_skinny)) return *tuned;
  if (request.few && (request.skinny_only || request.adds || !prefers_tiles(device, request)))
    return SkinnyPlan{};
  const bool is_layer = request.use == ProductUse::layer;
  if ((is_layer || !request.exchanged) && takes_tiles(device, request))
    return tiles(device, request.key);
  if (!request.exchanged) return PlainPlan{};
  const ProductRow row = tuned_product(device, *request.exchanged);
  return row && std::holds_alternative<SkinnyPlan>(*row) ? *row : SkinnyPlan{};
}

GemmPlan tile_plan(const ProductPlan& plan) noexcept {
  if (const auto* each = std::get_if<WgmmaPlan>(&plan)) return *each;
  if (const auto* each = std::get_if<MmaPlan>(&plan)) return *each;
  if (const auto* each = std::get_if<FmaPlan>(&plan)) return *each;
  return PlainPlan{};
}

GemmPlan plan_gemm(const Gemm& gemm) {
  if (gemm.a.ndim() < 2 || gemm.b.ndim() < 2) return PlainPlan{};  // Gemm::run() refuses them
  const bool gated = gemm.epilogue.gate && fuses_gate(gemm);
  const bool apart = gemm.epilogue.gate && !gated;
  const ScalarType out = apart ? ScalarType::float32 : gemm_result_type(gemm);
  ProductRequest request = product_request(gemm.a, gemm.b, out, ProductUse::tiles);
  request.key.accumulation = product_accumulation(gemm);
  request.key.gated = gated;
  return tile_plan(plan_product(gemm.a.device(), request));
}

Array run_gemm(const Gemm& gemm, const Stream& stream) {
  Gemm planned = gemm;
  planned.plan = plan_gemm(gemm);
  return planned.run(stream);
}

}  // namespace kernwright::kernels
