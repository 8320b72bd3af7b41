// Hands the embedded texts of the device headers to jit.
#include "kernels_src/device_headers.h"

#include "jit/source/builtin_headers.h"
#include "kernels_src/include/accumulate.cuh.h"
#include "kernels_src/include/activations.cuh.h"
#include "kernels_src/include/ahead/async_copy.cuh.h"
#include "kernels_src/include/ahead/overlap.cuh.h"
#include "kernels_src/include/attention/attention.cuh.h"
#include "kernels_src/include/attention/attention_gradient.cuh.h"
#include "kernels_src/include/attention/attention_group.cuh.h"
#include "kernels_src/include/attention/attention_loads.cuh.h"
#include "kernels_src/include/attention/attention_parts.cuh.h"
#include "kernels_src/include/attention/attention_results.cuh.h"
#include "kernels_src/include/attention/attention_rows.cuh.h"
#include "kernels_src/include/attention/attention_tile.cuh.h"
#include "kernels_src/include/attention/byte_tiles.cuh.h"
#include "kernels_src/include/attention/decode_block.cuh.h"
#include "kernels_src/include/attention/gradient_accumulators.cuh.h"
#include "kernels_src/include/attention/gradient_part.cuh.h"
#include "kernels_src/include/attention/gradient_rows.cuh.h"
#include "kernels_src/include/attention/logits.cuh.h"
#include "kernels_src/include/attention/rope_angles.cuh.h"
#include "kernels_src/include/attention/select_tokens.cuh.h"
#include "kernels_src/include/attention/split_parts.cuh.h"
#include "kernels_src/include/attention/token_cache.cuh.h"
#include "kernels_src/include/attention/tokens.cuh.h"
#include "kernels_src/include/attention/wide_gradient_accumulators.cuh.h"
#include "kernels_src/include/complex_math.cuh.h"
#include "kernels_src/include/edge_packs.cuh.h"
#include "kernels_src/include/elements.cuh.h"
#include "kernels_src/include/entropy_rows.cuh.h"
#include "kernels_src/include/expression.cuh.h"
#include "kernels_src/include/formats/gguf_blocks.cuh.h"
#include "kernels_src/include/formats/gguf_codes.cuh.h"
#include "kernels_src/include/functions.cuh.h"
#include "kernels_src/include/fused.cuh.h"
#include "kernels_src/include/matrices.cuh.h"
#include "kernels_src/include/norm/norm_gradient.cuh.h"
#include "kernels_src/include/norm/norm_rows.cuh.h"
#include "kernels_src/include/operations.cuh.h"
#include "kernels_src/include/order.cuh.h"
#include "kernels_src/include/packed/arranged_columns.cuh.h"
#include "kernels_src/include/packed/few_codes.cuh.h"
#include "kernels_src/include/packed/k_scales.cuh.h"
#include "kernels_src/include/packed/packed_arrays.cuh.h"
#include "kernels_src/include/packed/packed_codes.cuh.h"
#include "kernels_src/include/packed/packed_columns.cuh.h"
#include "kernels_src/include/packed/packed_digits.cuh.h"
#include "kernels_src/include/packed/packed_lanes.cuh.h"
#include "kernels_src/include/packed/packed_ring.cuh.h"
#include "kernels_src/include/packed/packed_scales.cuh.h"
#include "kernels_src/include/packed/packed_tiles.cuh.h"
#include "kernels_src/include/packed/packed_walk.cuh.h"
#include "kernels_src/include/packed/packed_weights.cuh.h"
#include "kernels_src/include/packed/packed_wgmma_rows.cuh.h"
#include "kernels_src/include/packed/spread_codes.cuh.h"
#include "kernels_src/include/packed/table_codes.cuh.h"
#include "kernels_src/include/packed/unit_weights.cuh.h"
#include "kernels_src/include/philox.cuh.h"
#include "kernels_src/include/posted.cuh.h"
#include "kernels_src/include/product/cluster_split_k.cuh.h"
#include "kernels_src/include/product/custom_epilogue.cuh.h"
#include "kernels_src/include/product/mbarrier.cuh.h"
#include "kernels_src/include/product/product_epilogue.cuh.h"
#include "kernels_src/include/product/product_roles.cuh.h"
#include "kernels_src/include/product/product_stages.cuh.h"
#include "kernels_src/include/product/product_staging.cuh.h"
#include "kernels_src/include/product/product_store.cuh.h"
#include "kernels_src/include/product/product_tiles.cuh.h"
#include "kernels_src/include/product/row_norm.cuh.h"
#include "kernels_src/include/product/skinny.cuh.h"
#include "kernels_src/include/product/skinny_weights.cuh.h"
#include "kernels_src/include/product/tensor_core.cuh.h"
#include "kernels_src/include/product/tma.cuh.h"
#include "kernels_src/include/product/weight_codes.cuh.h"
#include "kernels_src/include/product/yield.cuh.h"
#include "kernels_src/include/random/random_continuous.cuh.h"
#include "kernels_src/include/random/random_discrete.cuh.h"
#include "kernels_src/include/random/random_fills.cuh.h"
#include "kernels_src/include/random/random_source.cuh.h"
#include "kernels_src/include/ranks.cuh.h"
#include "kernels_src/include/real_math.cuh.h"
#include "kernels_src/include/recurrent/recurrence.cuh.h"
#include "kernels_src/include/reduce.cuh.h"
#include "kernels_src/include/reducers.cuh.h"
#include "kernels_src/include/row_cluster.cuh.h"
#include "kernels_src/include/rows.cuh.h"
#include "kernels_src/include/scan/ordered_scan.cuh.h"
#include "kernels_src/include/scan/running.cuh.h"
#include "kernels_src/include/scan/scan_parts.cuh.h"
#include "kernels_src/include/shared_address.cuh.h"
#include "kernels_src/include/shifted_units.cuh.h"
#include "kernels_src/include/small_floats.cuh.h"
#include "kernels_src/include/total.cuh.h"
#include "kernels_src/include/walk.cuh.h"
#include "kernels_src/include/wgmma/wgmma.cuh.h"
#include "kernels_src/include/wgmma/wgmma_accumulator_rows.cuh.h"
#include "kernels_src/include/wgmma/wgmma_accumulators.cuh.h"
#include "kernels_src/include/wgmma/wgmma_common.cuh.h"
#include "kernels_src/include/wgmma/wgmma_row_accumulators.cuh.h"
#include "kernels_src/include/wgmma/wgmma_rows.cuh.h"

#include <mutex>
#include <string>
#include <string_view>

namespace kernwright::kernels {
namespace {

struct DeviceHeader {
  const char* name;
  std::string_view text;
};

#define KW_HEADER(name) \
  { #name ".cuh", text::name##_cuh }
const DeviceHeader kHeaders[] = {
    KW_HEADER(accumulate),
    KW_HEADER(activations),
    KW_HEADER(arranged_columns),
    KW_HEADER(async_copy),
    KW_HEADER(attention),
    KW_HEADER(attention_gradient),
    KW_HEADER(attention_group),
    KW_HEADER(attention_loads),
    KW_HEADER(attention_parts),
    KW_HEADER(attention_results),
    KW_HEADER(attention_rows),
    KW_HEADER(attention_tile),
    KW_HEADER(byte_tiles),
    KW_HEADER(cluster_split_k),
    KW_HEADER(complex_math),
    KW_HEADER(decode_block),
    KW_HEADER(edge_packs),
    KW_HEADER(elements),
    KW_HEADER(entropy_rows),
    KW_HEADER(expression),
    KW_HEADER(few_codes),
    KW_HEADER(functions),
    KW_HEADER(fused),
    KW_HEADER(gguf_blocks),
    KW_HEADER(gguf_codes),
    KW_HEADER(gradient_accumulators),
    KW_HEADER(gradient_part),
    KW_HEADER(gradient_rows),
    KW_HEADER(k_scales),
    KW_HEADER(logits),
    KW_HEADER(matrices),
    KW_HEADER(mbarrier),
    KW_HEADER(norm_gradient),
    KW_HEADER(norm_rows),
    KW_HEADER(operations),
    KW_HEADER(order),
    KW_HEADER(ordered_scan),
    KW_HEADER(overlap),
    KW_HEADER(custom_epilogue),
    KW_HEADER(packed_arrays),
    KW_HEADER(packed_codes),
    KW_HEADER(packed_columns),
    KW_HEADER(packed_digits),
    KW_HEADER(packed_lanes),
    KW_HEADER(packed_ring),
    KW_HEADER(packed_scales),
    KW_HEADER(packed_tiles),
    KW_HEADER(packed_walk),
    KW_HEADER(packed_weights),
    KW_HEADER(packed_wgmma_rows),
    KW_HEADER(philox),
    KW_HEADER(posted),
    KW_HEADER(product_staging),
    KW_HEADER(product_epilogue),
    KW_HEADER(product_roles),
    KW_HEADER(product_stages),
    KW_HEADER(product_store),
    KW_HEADER(product_tiles),
    KW_HEADER(random_continuous),
    KW_HEADER(random_discrete),
    KW_HEADER(random_fills),
    KW_HEADER(random_source),
    KW_HEADER(ranks),
    KW_HEADER(real_math),
    KW_HEADER(recurrence),
    KW_HEADER(reduce),
    KW_HEADER(reducers),
    KW_HEADER(rope_angles),
    KW_HEADER(row_cluster),
    KW_HEADER(row_norm),
    KW_HEADER(rows),
    KW_HEADER(running),
    KW_HEADER(scan_parts),
    KW_HEADER(select_tokens),
    KW_HEADER(shared_address),
    KW_HEADER(shifted_units),
    KW_HEADER(skinny),
    KW_HEADER(skinny_weights),
    KW_HEADER(small_floats),
    KW_HEADER(split_parts),
    KW_HEADER(spread_codes),
    KW_HEADER(table_codes),
    KW_HEADER(tensor_core),
    KW_HEADER(tma),
    KW_HEADER(token_cache),
    KW_HEADER(tokens),
    KW_HEADER(total),
    KW_HEADER(unit_weights),
    KW_HEADER(walk),
    KW_HEADER(weight_codes),
    KW_HEADER(wgmma),
    KW_HEADER(wgmma_accumulator_rows),
    KW_HEADER(wgmma_accumulators),
    KW_HEADER(wgmma_common),
    KW_HEADER(wgmma_row_accumulators),
    KW_HEADER(wgmma_rows),
    KW_HEADER(wide_gradient_accumulators),
    KW_HEADER(yield),
};
#undef KW_HEADER

}  // namespace

void register_device_headers() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const auto& [name, text] : kHeaders)
      add_builtin_header(std::string("kernwright/") + name, std::string(text));
  });
}

}  // namespace kernwright::kernels
