// Which headers count as CUDA's, so that places in them are replaced by the lines that call them.
#include "sim/ptx/debug_lines.h"

#include <doctest/doctest.h>

using kernwright::sim::ptx::is_toolkit_file;

TEST_CASE("debug lines: headers of CUDA, wherever they come from") {
  for (const char* path : {
           "/u/.cache/kernwright/headers-13.5/cuda_fp16.h",
           "/u/.cache/kernwright/headers-13.5/cuda_pipeline_helpers.h",
           "/u/.cache/kernwright/headers-13.5/cooperative_groups/details/reduce.h",
           "/u/.cache/kernwright/headers-13.5/crt/mma.hpp",
           "/u/.cache/kernwright/headers-13.5/mma.h",
           "/u/.cache/kernwright/headers-13.5/cccl/cub/block/block_reduce.cuh",
           "/u/.cache/kernwright/headers-13.5/cccl/cuda/__ptx/instructions/generated/"
           "get_sreg.h",
           "/v/lib/python3.12/site-packages/nvidia/cuda_runtime/include/cuda_fp16.hpp",
           "/v/lib/python3.12/site-packages/nvidia/cu13/include/cccl/cuda/std/__bit/bit_cast.h",
           "/v/lib/python3.12/site-packages/nvidia/mathdx/include/cublasdx.hpp",
           "/usr/local/cuda-13.0/include/vector_types.h",
           "/usr/local/cuda/include/curand_philox4x32_x.h",
           "/usr/local/cuda/targets/x86_64-linux/include/math_functions.h",
           "/usr/include/cuda_fp16.hpp",
           "/usr/include/sm_60_atomic_functions.hpp",
           "/usr/include/cuda/barrier",
           "/opt/include/nv/target",
           "include/cuda_fp8.hpp",
           "include/cccl/cuda/std/__atomic/api/reference.h",
           "/src/cccl/thrust/thrust/complex.h",
           "/src/cccl/libcudacxx/include/cuda/std/complex",
           "cuda_fp16.h",
       }) {
    CAPTURE(path);
    CHECK(is_toolkit_file(path));
  }
}

TEST_CASE("debug lines: headers of a project, whatever they are called") {
  for (const char* path : {
           "/u/app/include/vector_ops.h",
           "/u/app/include/math_utils.cuh",
           "/u/app/include/mma.h",
           "/u/app/include/math_functions.h",
           "/u/app/include/sm_tools.h",
           "/u/app/include/sm_90_kernels.h",
           "/u/app/include/cuda_kernels.h",
           "/u/app/include/cuda/kernels.cuh",
           "/u/app/include/cuda/ops/add.cuh",
           "/u/app/cuda/include/kernels.cuh",
           "/u/app/cub/sum.cuh",
           "/u/app/headers-2/mine.h",
           "/u/nvidia/app/kernel.cu",
           "/u/nvidia/app/include/kernel.cuh",
           "/u/site-packages/nvidia/app.cuh",
           "/u/cuda-13.0/app.cu",
           "/u/app/device_functions_intrinsics.h",
           "cuda_ops.h",
           "math_ops.hpp",
           "kernel.cu",
           "<string>",
           "",
       }) {
    CAPTURE(path);
    CHECK_FALSE(is_toolkit_file(path));
  }
}
