// Hands the embedded texts of the device headers to the jit room.
#include "kernels_src/device_headers.h"

#include "jit/source/builtin_headers.h"
#include "kernels_src/include/elements.cuh.h"
#include "kernels_src/include/order.cuh.h"
#include "kernels_src/include/philox.cuh.h"
#include "kernels_src/include/ranks.cuh.h"
#include "kernels_src/include/reduce.cuh.h"
#include "kernels_src/include/small_floats.cuh.h"
#include "kernels_src/include/strided.cuh.h"

#include <mutex>

namespace kernwright::kernels {

void register_device_headers() {
  static std::once_flag once;
  std::call_once(once, [] {
    add_builtin_header("kernwright/elements.cuh", text::elements_cuh);
    add_builtin_header("kernwright/order.cuh", text::order_cuh);
    add_builtin_header("kernwright/philox.cuh", text::philox_cuh);
    add_builtin_header("kernwright/ranks.cuh", text::ranks_cuh);
    add_builtin_header("kernwright/reduce.cuh", text::reduce_cuh);
    add_builtin_header("kernwright/small_floats.cuh", text::small_floats_cuh);
    add_builtin_header("kernwright/strided.cuh", text::strided_cuh);
  });
}

}  // namespace kernwright::kernels
