// Hands the embedded texts of the device headers to jit.
#include "kernels_src/device_headers.h"

#include "jit/source/builtin_headers.h"
#include "kernels_src/include/accumulate.cuh.h"
#include "kernels_src/include/activations.cuh.h"
#include "kernels_src/include/ahead/async_copy.cuh.h"
#include "kernels_src/include/ahead/overlap.cuh.h"
#include "kernels_src/include/attention/attention.cuh.h"
#include "kernels_src/include/attention/attention_gradient.cuh.h"
#include "kernels_src/include/attention/attention_parts.cuh.h"
#include "kernels_src/include/attention/attention_rows.cuh.h"
#include "kernels_src/include/attention/attention_tile.cuh.h"
#include "kernels_src/include/attention/gradient_part.cuh.h"
#include "kernels_src/include/attention/logits.cuh.h"
#include "kernels_src/include/attention/rope_angles.cuh.h"
#include "kernels_src/include/attention/select_tokens.cuh.h"
#include "kernels_src/include/attention/token_cache.cuh.h"
#include "kernels_src/include/attention/tokens.cuh.h"
#include "kernels_src/include/complex_math.cuh.h"
#include "kernels_src/include/edge_packs.cuh.h"
#include "kernels_src/include/elements.cuh.h"
#include "kernels_src/include/entropy_rows.cuh.h"
#include "kernels_src/include/expression.cuh.h"
#include "kernels_src/include/functions.cuh.h"
#include "kernels_src/include/fused.cuh.h"
#include "kernels_src/include/matrices.cuh.h"
#include "kernels_src/include/norm_rows.cuh.h"
#include "kernels_src/include/operations.cuh.h"
#include "kernels_src/include/order.cuh.h"
#include "kernels_src/include/ordered_scan.cuh.h"
#include "kernels_src/include/philox.cuh.h"
#include "kernels_src/include/posted.cuh.h"
#include "kernels_src/include/product/mbarrier.cuh.h"
#include "kernels_src/include/product/own_epilogue.cuh.h"
#include "kernels_src/include/product/packed_weights.cuh.h"
#include "kernels_src/include/product/product_epilogue.cuh.h"
#include "kernels_src/include/product/product_roles.cuh.h"
#include "kernels_src/include/product/product_stages.cuh.h"
#include "kernels_src/include/product/product_store.cuh.h"
#include "kernels_src/include/product/product_tiles.cuh.h"
#include "kernels_src/include/product/skinny.cuh.h"
#include "kernels_src/include/product/skinny_weights.cuh.h"
#include "kernels_src/include/product/tensor_core.cuh.h"
#include "kernels_src/include/product/tma.cuh.h"
#include "kernels_src/include/product/weight_codes.cuh.h"
#include "kernels_src/include/product/wgmma.cuh.h"
#include "kernels_src/include/product/wgmma_k_major.cuh.h"
#include "kernels_src/include/product/wgmma_rows.cuh.h"
#include "kernels_src/include/ranks.cuh.h"
#include "kernels_src/include/real_math.cuh.h"
#include "kernels_src/include/reduce.cuh.h"
#include "kernels_src/include/reducers.cuh.h"
#include "kernels_src/include/rows.cuh.h"
#include "kernels_src/include/running.cuh.h"
#include "kernels_src/include/small_floats.cuh.h"
#include "kernels_src/include/total.cuh.h"
#include "kernels_src/include/walk.cuh.h"

#include <mutex>

namespace kernwright::kernels {

void register_device_headers() {
  static std::once_flag once;
  std::call_once(once, [] {
    add_builtin_header("kernwright/accumulate.cuh", text::accumulate_cuh);
    add_builtin_header("kernwright/attention.cuh", text::attention_cuh);
    add_builtin_header("kernwright/attention_gradient.cuh", text::attention_gradient_cuh);
    add_builtin_header("kernwright/attention_parts.cuh", text::attention_parts_cuh);
    add_builtin_header("kernwright/attention_rows.cuh", text::attention_rows_cuh);
    add_builtin_header("kernwright/attention_tile.cuh", text::attention_tile_cuh);
    add_builtin_header("kernwright/activations.cuh", text::activations_cuh);
    add_builtin_header("kernwright/async_copy.cuh", text::async_copy_cuh);
    add_builtin_header("kernwright/edge_packs.cuh", text::edge_packs_cuh);
    add_builtin_header("kernwright/elements.cuh", text::elements_cuh);
    add_builtin_header("kernwright/entropy_rows.cuh", text::entropy_rows_cuh);
    add_builtin_header("kernwright/logits.cuh", text::logits_cuh);
    add_builtin_header("kernwright/select_tokens.cuh", text::select_tokens_cuh);
    add_builtin_header("kernwright/matrices.cuh", text::matrices_cuh);
    add_builtin_header("kernwright/norm_rows.cuh", text::norm_rows_cuh);
    add_builtin_header("kernwright/packed_weights.cuh", text::packed_weights_cuh);
    add_builtin_header("kernwright/expression.cuh", text::expression_cuh);
    add_builtin_header("kernwright/fused.cuh", text::fused_cuh);
    add_builtin_header("kernwright/gradient_part.cuh", text::gradient_part_cuh);
    add_builtin_header("kernwright/ordered_scan.cuh", text::ordered_scan_cuh);
    add_builtin_header("kernwright/complex_math.cuh", text::complex_math_cuh);
    add_builtin_header("kernwright/functions.cuh", text::functions_cuh);
    add_builtin_header("kernwright/operations.cuh", text::operations_cuh);
    add_builtin_header("kernwright/own_epilogue.cuh", text::own_epilogue_cuh);
    add_builtin_header("kernwright/overlap.cuh", text::overlap_cuh);
    add_builtin_header("kernwright/philox.cuh", text::philox_cuh);
    add_builtin_header("kernwright/posted.cuh", text::posted_cuh);
    add_builtin_header("kernwright/real_math.cuh", text::real_math_cuh);
    add_builtin_header("kernwright/order.cuh", text::order_cuh);
    add_builtin_header("kernwright/ranks.cuh", text::ranks_cuh);
    add_builtin_header("kernwright/reduce.cuh", text::reduce_cuh);
    add_builtin_header("kernwright/rope_angles.cuh", text::rope_angles_cuh);
    add_builtin_header("kernwright/rows.cuh", text::rows_cuh);
    add_builtin_header("kernwright/running.cuh", text::running_cuh);
    add_builtin_header("kernwright/reducers.cuh", text::reducers_cuh);
    add_builtin_header("kernwright/skinny.cuh", text::skinny_cuh);
    add_builtin_header("kernwright/skinny_weights.cuh", text::skinny_weights_cuh);
    add_builtin_header("kernwright/small_floats.cuh", text::small_floats_cuh);
    add_builtin_header("kernwright/walk.cuh", text::walk_cuh);
    add_builtin_header("kernwright/weight_codes.cuh", text::weight_codes_cuh);
    add_builtin_header("kernwright/tensor_core.cuh", text::tensor_core_cuh);
    add_builtin_header("kernwright/token_cache.cuh", text::token_cache_cuh);
    add_builtin_header("kernwright/tokens.cuh", text::tokens_cuh);
    add_builtin_header("kernwright/mbarrier.cuh", text::mbarrier_cuh);
    add_builtin_header("kernwright/tma.cuh", text::tma_cuh);
    add_builtin_header("kernwright/wgmma.cuh", text::wgmma_cuh);
    add_builtin_header("kernwright/wgmma_k_major.cuh", text::wgmma_k_major_cuh);
    add_builtin_header("kernwright/wgmma_rows.cuh", text::wgmma_rows_cuh);
    add_builtin_header("kernwright/product_epilogue.cuh", text::product_epilogue_cuh);
    add_builtin_header("kernwright/product_roles.cuh", text::product_roles_cuh);
    add_builtin_header("kernwright/product_stages.cuh", text::product_stages_cuh);
    add_builtin_header("kernwright/product_store.cuh", text::product_store_cuh);
    add_builtin_header("kernwright/product_tiles.cuh", text::product_tiles_cuh);
    add_builtin_header("kernwright/total.cuh", text::total_cuh);
  });
}

}  // namespace kernwright::kernels
