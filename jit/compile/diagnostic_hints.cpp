// What usually helps, by the text of the compiler's message.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/format.h"
#include "jit/compile/diagnostics.h"
#include "jit/source/builtin_headers.h"

namespace kernwright {
namespace {

/// The text between the first pair of double quotes behind `mark`.
std::string_view quoted_behind(std::string_view message, std::string_view mark) {
  const auto at = message.find(mark);
  if (at == std::string_view::npos) return {};
  const auto begin = message.find('"', at + mark.size());
  if (begin == std::string_view::npos) return {};
  const auto end = message.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : message.substr(begin + 1, end - begin - 1);
}

struct WordHint {
  std::string_view word;
  std::string_view hint;
};

template <std::size_t N>
std::string_view look_up(const std::array<WordHint, N>& table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const WordHint& row) {
    return row.word.ends_with('*') ? word.starts_with(row.word.substr(0, row.word.size() - 1))
                                   : row.word == word;
  });
  return found == table.end() ? std::string_view() : found->hint;
}

constexpr std::string_view kRuntimePackage =
    "of the package nvidia-cuda-runtime (pip install nvidia-cuda-runtime); NVRTC 13.3 and newer "
    "carries it too (pip install -U nvidia-cuda-nvrtc)";
constexpr std::string_view kBuiltIn =
    "leave the include out: NVRTC declares by itself what kernels use of it, and functions of the "
    "CUDA runtime are the host's";
constexpr std::string_view kCompare =
    "NVRTC has no std::strong_ordering: write the comparison operators one by one";
constexpr std::string_view kLibraryPackage =
    "of the package nvidia-cuda-cccl (pip install nvidia-cuda-cccl); NVRTC 13.3 and newer carries "
    "it too (pip install -U nvidia-cuda-nvrtc)";
constexpr std::string_view kCurand =
    "curand is not bundled: #include <kernwright/philox.cuh> brings random numbers that need no "
    "library, or pip install nvidia-curand and name its include folder in include_dirs";
constexpr std::string_view kHostHeader =
    "the host's standard headers do not exist in device code: use cuda::std (for example "
    "#include <cuda/std/cstdint>, <cuda/std/limits>, <cuda/std/array>)";
constexpr std::string_view kNoInclude =
    "leave the include out: assert(), printf(), malloc(), memcpy() and the functions of math.h are "
    "built in";
constexpr std::string_view kOwnHeader =
    "give its text in the option headers={name: text}, or name its folder in include_dirs";

/// Include names, '*' stands for the rest.
constexpr std::array kHeaderHints{
    WordHint{"cuda/std/compare", kCompare},
    WordHint{"compare", kCompare},
    WordHint{"cuda/*", kLibraryPackage},
    WordHint{"cub/*", kLibraryPackage},
    WordHint{"thrust/*", kLibraryPackage},
    WordHint{"nv/*", kLibraryPackage},
    WordHint{"cuda.h", kBuiltIn},
    WordHint{"cuda_runtime*", kBuiltIn},
    WordHint{"cuda_device_runtime_api.h", kBuiltIn},
    WordHint{"cuda_profiler_api.h", kBuiltIn},
    WordHint{"cuda_texture_types.h", kBuiltIn},
    WordHint{"cuda_surface_types.h", kBuiltIn},
    WordHint{"cuda*", kRuntimePackage},
    WordHint{"cooperative_groups*", kRuntimePackage},
    WordHint{"mma.h", kRuntimePackage},
    WordHint{"sm_*", kBuiltIn},
    WordHint{"vector_types.h", kRuntimePackage},
    WordHint{"device_launch_parameters.h", kBuiltIn},
    WordHint{"builtin_types.h", kBuiltIn},
    WordHint{"channel_descriptor.h", kBuiltIn},
    WordHint{"device_functions.h", kBuiltIn},
    WordHint{"device_atomic_functions.h", kBuiltIn},
    WordHint{"device_double_functions.h", kBuiltIn},
    WordHint{"driver_types.h", kBuiltIn},
    WordHint{"host_defines.h", kBuiltIn},
    WordHint{"math_functions.h", kBuiltIn},
    WordHint{"surface_*", kBuiltIn},
    WordHint{"texture_*", kBuiltIn},
    WordHint{"vector_functions.h*", kBuiltIn},
    WordHint{"crt/*", "pip install nvidia-cuda-crt, or an NVRTC of 13.3 or newer"},
    WordHint{"curand*", kCurand},
    WordHint{"cutlass/*", "name the include folder of CUTLASS in include_dirs"},
    WordHint{"cute/*", "name the include folder of CUTLASS in include_dirs"},
};

/// Of the host's, those whose functions kernels have without any include.
constexpr std::array<std::string_view, 10> kNeedlessHeaders{
    "assert.h", "cassert", "cmath",   "cstdio",   "cstdlib",
    "cstring",  "math.h",  "stdio.h", "stdlib.h", "string.h"};

constexpr std::array<std::string_view, 46> kStandardHeaders{
    "algorithm", "array",    "atomic",      "bit",        "cassert",
    "cfloat",    "chrono",   "climits",     "cmath",      "cstddef",
    "cstdint",   "cstdio",   "cstdlib",     "cstring",    "complex",
    "concepts",  "deque",    "exception",   "functional", "initializer_list",
    "iomanip",   "iostream", "iterator",    "limits",     "list",
    "map",       "memory",   "new",         "numeric",    "optional",
    "random",    "ratio",    "set",         "span",       "sstream",
    "stdexcept", "string",   "string_view", "tuple",      "type_traits",
    "utility",   "variant",  "vector",      "stdint.h",   "math.h",
    "float.h"};

constexpr std::array<std::string_view, 7> kHostOnlyHeaders{
    "stdio.h", "stdlib.h", "string.h", "assert.h", "limits.h", "stddef.h", "stdbool.h"};

constexpr std::string_view kFixedWidth =
    "#include <cuda/std/cstdint> and write cuda::std::uint32_t, or use unsigned int, long long ...";
constexpr std::string_view kHalf = "#include <cuda_fp16.h>";
constexpr std::string_view kBfloat = "#include <cuda_bf16.h>";
constexpr std::string_view kFp8 = "#include <cuda_fp8.h>";
constexpr std::string_view kLimits =
    "this macro is the host's: #include <cuda/std/limits> or <cuda/std/cfloat>, or write the value";

constexpr std::array kIdentifierHints{
    WordHint{"uint8_t", kFixedWidth},
    WordHint{"uint16_t", kFixedWidth},
    WordHint{"uint32_t", kFixedWidth},
    WordHint{"uint64_t", kFixedWidth},
    WordHint{"int8_t", kFixedWidth},
    WordHint{"int16_t", kFixedWidth},
    WordHint{"int32_t", kFixedWidth},
    WordHint{"int64_t", kFixedWidth},
    WordHint{"uintptr_t", kFixedWidth},
    WordHint{"intptr_t", kFixedWidth},
    WordHint{"half", kHalf},
    WordHint{"half2", kHalf},
    WordHint{"__half*", kHalf},
    WordHint{"__float2half*", kHalf},
    WordHint{"__nv_bfloat16*", kBfloat},
    WordHint{"nv_bfloat16*", kBfloat},
    WordHint{"__float2bfloat16*", kBfloat},
    WordHint{"__bfloat16*", kBfloat},
    WordHint{"__nv_fp8*", kFp8},
    WordHint{"cooperative_groups", "#include <cooperative_groups.h>"},
    WordHint{"cg", "#include <cooperative_groups.h> and namespace cg = cooperative_groups;"},
    WordHint{"nvcuda", "#include <mma.h>"},
    WordHint{"wmma", "#include <mma.h> and using namespace nvcuda;"},
    WordHint{"cub", "#include <cub/cub.cuh> or the one header that is needed"},
    WordHint{"curand*", kCurand},
    WordHint{"std", kHostHeader},
    WordHint{"cout", "a kernel prints with printf, which needs no header"},
    WordHint{"fprintf", "a kernel prints with printf, which needs no header"},
    WordHint{"FLT_*", kLimits},
    WordHint{"DBL_*", kLimits},
    WordHint{"INT_M*", kLimits},
    WordHint{"UINT_MAX", kLimits},
    WordHint{"LLONG_*", kLimits},
    WordHint{"INFINITY", "write __int_as_float(0x7f800000), or #include <cuda/std/limits>"},
    WordHint{"NAN", "write __int_as_float(0x7fffffff), or #include <cuda/std/limits>"},
    WordHint{"M_*", "this constant is the host's: write its value, for example 3.14159265f"},
    WordHint{"thread_idx", "did you mean threadIdx?"},
    WordHint{"ThreadIdx", "did you mean threadIdx?"},
    WordHint{"threadidx", "did you mean threadIdx?"},
    WordHint{"blockidx", "did you mean blockIdx?"},
    WordHint{"blockdim", "did you mean blockDim?"},
    WordHint{"__syncthread", "did you mean __syncthreads()?"},
    WordHint{"syncthreads", "did you mean __syncthreads()?"},
    WordHint{"cudaGridDependencySynchronize",
             "under NVRTC write asm volatile(\"griddepcontrol.wait;\")"},
    WordHint{"cudaTriggerProgrammaticLaunchCompletion",
             "under NVRTC write asm volatile(\"griddepcontrol.launch_dependents;\")"},
};

/// Where the folders hold the package that the hint names: installing it again does not help.
std::string hint_of_installed(std::string_view hint, std::string_view name,
                              std::span<const std::string> folders) {
  const bool library = hint == kLibraryPackage, package = hint == kRuntimePackage;
  if (!library && !package) return std::string(hint);
  const std::string_view mark = library ? name.substr(0, name.find('/')) : "cuda_fp16.h";
  for (const std::string& folder : folders) {
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::path(folder) / mark, error)) continue;
    return format("the headers in {} have no such file; {}", folder, kOwnHeader);
  }
  return std::string(hint);
}

std::string header_hint(std::string_view name, std::span<const std::string> folders) {
  const auto is = [&](std::string_view other) { return name == other; };
  if (std::any_of(kNeedlessHeaders.begin(), kNeedlessHeaders.end(), is)) {
    return std::string(kNoInclude);
  }
  if (std::any_of(kStandardHeaders.begin(), kStandardHeaders.end(), is) ||
      std::any_of(kHostOnlyHeaders.begin(), kHostOnlyHeaders.end(), is)) {
    return std::string(kHostHeader);
  }
  if (name.starts_with("kernwright/")) {
    std::string names;
    for (const auto& [own, text] : builtin_headers()) names += (names.empty() ? "" : ", ") + own;
    return names.empty() ? std::string(kOwnHeader) : "the library has these of its own: " + names;
  }
  const std::string_view known = look_up(kHeaderHints, name);
  return known.empty() ? std::string(kOwnHeader) : hint_of_installed(known, name, folders);
}

std::string identifier_hint(std::string_view message) {
  for (const std::string_view mark : {"identifier ", "name "}) {
    if (!message.starts_with(mark)) continue;
    const std::string_view hint = look_up(kIdentifierHints, quoted_behind(message, mark));
    if (!hint.empty()) return std::string(hint);
  }
  const bool qualified = message.find("must be a class or namespace") != std::string_view::npos ||
                         message.find("must be a namespace name") != std::string_view::npos;
  if (qualified) {
    const std::string_view hint = look_up(kIdentifierHints, quoted_behind(message, ""));
    if (!hint.empty()) return std::string(hint);
  }
  // "namespace "std" has no member "min"": NVRTC declares a few names of std itself.
  if (message.starts_with("namespace \"std\" has no member")) return std::string(kHostHeader);
  return {};
}

std::string hint_for(std::string_view message, std::span<const std::string> folders) {
  if (message.find("open source file") != std::string_view::npos) {
    return header_hint(quoted_behind(message, "open source file"), folders);
  }
  if (message.find("uses too much shared data") != std::string_view::npos) {
    return "static shared memory ends at 48 KiB: declare it extern __shared__ and ask for the "
           "bytes "
           "at launch";
  }
  if (message.find("--device-int128") != std::string_view::npos) {
    return "give the option: extra=[\"--device-int128\"]";
  }
  if (message.find("attribute \"__global__\" does not apply here") != std::string_view::npos) {
    return "a kernel is written __global__ void name(...); an unknown type in its parameters makes "
           "the compiler say this too";
  }
  return identifier_hint(message);
}

}  // namespace

void add_hints(std::vector<Diagnostic>& diagnostics, std::span<const std::string> header_folders) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.hint.empty() && diagnostic.severity == Severity::error) {
      diagnostic.hint = hint_for(diagnostic.message, header_folders);
    }
  }
}

}  // namespace kernwright
