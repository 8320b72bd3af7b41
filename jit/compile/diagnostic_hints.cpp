// The usual remedies, by the text of the compiler's message.
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
constexpr std::string_view kCompare =
    "NVRTC has no std::strong_ordering: write the comparison operators one by one";
constexpr std::string_view kLibraryPackage =
    "of the package nvidia-cuda-cccl (pip install nvidia-cuda-cccl); NVRTC 13.3 and newer carries "
    "it too (pip install -U nvidia-cuda-nvrtc)";
constexpr std::string_view kCurand =
    "curand is not bundled: #include <kernwright/philox.cuh> brings random numbers that need no "
    "library, or pip install nvidia-curand and name its include folder in include_dirs";
constexpr std::string_view kHostHeader =
    "this header is for host code: remove the include, or set the option strip_host=True, which "
    "leaves all host code out (kernwright compile --device-only)";
constexpr std::string_view kHostName =
    "in device code, std:: has the names of cuda::std: include the header that declares it "
    "(<algorithm>, <cmath>, <limits> ... mean <cuda/std/...> here); strip_host=True leaves host "
    "code out";
constexpr std::string_view kHostLibrary =
    "this library is for host code: kernels cannot call it. Remove the include, or set the "
    "option strip_host=True, which leaves all host code out";
constexpr std::string_view kHostAlgorithm =
    "these headers of CUDA's C++ library are for host code: their algorithms, containers and "
    "streams launch kernels themselves. Call kw.sort, kw.sum and the like from Python; within "
    "kernels use "
    "cub's warp and block primitives (<cub/block/block_reduce.cuh>) and <cuda/std/...>";
constexpr std::string_view kOwnHeader =
    "give its text in the option headers={name: text}, or name its folder in include_dirs";

constexpr std::string_view kCompilerPackage =
    "of the package nvidia-cuda-crt (pip install nvidia-cuda-crt), which belongs to the compiler; "
    "NVRTC itself declares the parts of crt/ for kernels: remove the include";

/// Include names, '*' stands for the rest.
constexpr std::array kHeaderHints{
    WordHint{"cuda/std/compare", kCompare},
    WordHint{"compare", kCompare},
    WordHint{"cuda/*", kLibraryPackage},
    WordHint{"cub/*", kLibraryPackage},
    WordHint{"thrust/*", kLibraryPackage},
    WordHint{"nv/*", kLibraryPackage},
    WordHint{"cuda_fp*", kRuntimePackage},
    WordHint{"cuda_bf16*", kRuntimePackage},
    WordHint{"cuda_pipeline*", kRuntimePackage},
    WordHint{"cuda_awbarrier*", kRuntimePackage},
    WordHint{"cooperative_groups*", kRuntimePackage},
    WordHint{"cuComplex.h", kRuntimePackage},
    WordHint{"math_constants.h", kRuntimePackage},
    WordHint{"mma.h", kRuntimePackage},
    WordHint{"crt/*", kCompilerPackage},
    WordHint{"curand.h", kHostLibrary},
    WordHint{"curand_kernel.h", kCurand},
    WordHint{"curand_*", kCurand},
    WordHint{"cublas*", kHostLibrary},
    WordHint{"cudnn*", kHostLibrary},
    WordHint{"cufft*", kHostLibrary},
    WordHint{"cusolver*", kHostLibrary},
    WordHint{"cusparse*", kHostLibrary},
    WordHint{"cutensor*", kHostLibrary},
    WordHint{"nccl*", kHostLibrary},
    WordHint{"npp*", kHostLibrary},
    WordHint{"nvjpeg*", kHostLibrary},
    WordHint{"nvml*", kHostLibrary},
    WordHint{"nvrtc*", kHostLibrary},
    WordHint{"nvToolsExt*", kHostLibrary},
    WordHint{"nvtx3/*", kHostLibrary},
    WordHint{"torch/*", kHostLibrary},
    WordHint{"ATen/*", kHostLibrary},
    WordHint{"c10/*", kHostLibrary},
    WordHint{"pybind11/*", kHostLibrary},
    WordHint{"helper_cuda.h", kHostLibrary},
    WordHint{"helper_functions.h", kHostLibrary},
    WordHint{"mpi.h", kHostLibrary},
    WordHint{"omp.h", kHostLibrary},
    WordHint{"cutlass/*", "name the include folder of CUTLASS in include_dirs"},
    WordHint{"cute/*", "name the include folder of CUTLASS in include_dirs"},
};

constexpr std::string_view kFixedWidth = "#include <cstdint>, or use unsigned int, long long ...";
constexpr std::string_view kHalf = "#include <cuda_fp16.h>";
constexpr std::string_view kBfloat = "#include <cuda_bf16.h>";
constexpr std::string_view kFp8 = "#include <cuda_fp8.h>";
constexpr std::string_view kLimits = "#include <climits> or <cfloat>, or write the value";
constexpr std::string_view kMathMacro = "#include <cmath>, or write the value, such as 3.14159265f";
constexpr std::string_view kHostCall =
    "this is for host code: a kernel cannot call the CUDA runtime or the driver. Allocate, copy, "
    "launch and synchronize in Python; strip_host=True leaves host code out";

constexpr std::string_view kClusters =
    "clusters need a newer architecture (sm_90): a GPU that has it, or on the simulated device "
    "KERNWRIGHT_SIM_CAPABILITY=9.0 in the environment";

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
    WordHint{"std", kHostName},
    WordHint{"CUtensorMap", "#include <cuda.h>"},
    WordHint{"__cluster*", kClusters},
    WordHint{"__isCtaShared", kClusters},
    WordHint{"__isClusterShared", kClusters},
    WordHint{"cout", "a kernel prints with printf, which needs no header"},
    WordHint{"fprintf", "a kernel prints with printf, which needs no header"},
    WordHint{"FLT_MAX", kLimits},
    WordHint{"FLT_MIN", kLimits},
    WordHint{"FLT_EPSILON", kLimits},
    WordHint{"DBL_MAX", kLimits},
    WordHint{"DBL_MIN", kLimits},
    WordHint{"DBL_EPSILON", kLimits},
    WordHint{"INT_MAX", kLimits},
    WordHint{"INT_MIN", kLimits},
    WordHint{"CHAR_BIT", kLimits},
    WordHint{"LONG_MAX", kLimits},
    WordHint{"UINT_MAX", kLimits},
    WordHint{"LLONG_MAX", kLimits},
    WordHint{"LLONG_MIN", kLimits},
    WordHint{"SIZE_MAX", kFixedWidth},
    WordHint{"INFINITY", kMathMacro},
    WordHint{"NAN", kMathMacro},
    WordHint{"HUGE_VAL", kMathMacro},
    WordHint{"M_E", kMathMacro},
    WordHint{"M_PI", kMathMacro},
    WordHint{"M_PI_2", kMathMacro},
    WordHint{"M_PI_4", kMathMacro},
    WordHint{"M_1_PI", kMathMacro},
    WordHint{"M_2_PI", kMathMacro},
    WordHint{"M_LN2", kMathMacro},
    WordHint{"M_LN10", kMathMacro},
    WordHint{"M_LOG2E", kMathMacro},
    WordHint{"M_LOG10E", kMathMacro},
    WordHint{"M_SQRT2", kMathMacro},
    WordHint{"M_SQRT1_2", kMathMacro},
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

/// For folders with the package that the hint names: installing it again does not help.
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
  if (name.starts_with("kernwright/")) {
    std::string names;
    for (const auto& [own, text] : builtin_headers()) names += (names.empty() ? "" : ", ") + own;
    return names.empty() ? std::string(kOwnHeader) : "the library has these of its own: " + names;
  }
  const std::string_view known = look_up(kHeaderHints, name);
  if (!known.empty()) return hint_of_installed(known, name, folders);
  const bool is_standard = name.find_first_of("./") == std::string_view::npos;
  const bool is_system = name.starts_with("sys/") || name == "unistd.h" || name == "pthread.h";
  return std::string(is_standard || is_system ? kHostHeader : kOwnHeader);
}

/// A function of the CUDA runtime or the driver: cudaMalloc, cuLaunchKernel.
bool is_host_call(std::string_view name) {
  const std::string_view rest = name.starts_with("cuda") ? name.substr(4)
                                : name.starts_with("cu") ? name.substr(2)
                                                         : std::string_view();
  return rest.size() > 1 && rest[0] >= 'A' && rest[0] <= 'Z' && rest[1] >= 'a' && rest[1] <= 'z';
}

std::string identifier_hint(std::string_view message) {
  for (const std::string_view mark : {"identifier ", "name "}) {
    if (!message.starts_with(mark)) continue;
    const std::string_view hint = look_up(kIdentifierHints, quoted_behind(message, mark));
    if (!hint.empty()) return std::string(hint);
    if (is_host_call(quoted_behind(message, mark))) return std::string(kHostCall);
  }
  const bool qualified = message.find("must be a class or namespace") != std::string_view::npos ||
                         message.find("must be a namespace name") != std::string_view::npos;
  if (qualified) {
    const std::string_view hint = look_up(kIdentifierHints, quoted_behind(message, ""));
    if (!hint.empty()) return std::string(hint);
  }
  // "namespace "std" has no member "min"": NVRTC declares a few names of std itself.
  if (message.starts_with("namespace \"std\" has no member")) return std::string(kHostName);
  return {};
}

/// The hint for an instruction missing in the architecture.
std::string architecture_hint(std::string_view message) {
  const auto mentions = [&](std::string_view word) {
    return message.find(word) != std::string_view::npos;
  };
  if (mentions("tcgen05")) return "it needs a GPU of arch=\"sm_100a\"";
  const bool is_specific =
      mentions("wgmma") || mentions("setmaxnreg") || mentions("_on_SM_90a") || mentions("sm_90a");
  return format(
      "it needs {}: a GPU that has it, or on the simulated device "
      "KERNWRIGHT_SIM_CAPABILITY=9.0 in the environment",
      is_specific ? "arch=\"sm_90a\"" : "a newer architecture (sm_90)");
}

/// The hint for a mistake in a kernel, independent of names.
std::string_view language_hint(std::string_view message) {
  static constexpr std::array kRows{
      WordHint{"__cluster_dims__ is not supported", kClusters},
      WordHint{"\"cooperative_groups\" has no member \"this_cluster\"", kClusters},
      WordHint{"\"cooperative_groups\" has no member \"cluster_", kClusters},
      WordHint{"\"cooperative_groups::__v1\" has no member \"cluster_", kClusters},
      WordHint{"device-side kernel launch could not be processed",
               "a kernel cannot launch kernels here (dynamic parallelism needs the device runtime "
               "library): launch from Python, or turn the inner kernel into a __device__ function"},
      WordHint{"Formal parameter space overflowed",
               "the parameters of a kernel hold 32764 bytes (4096 before sm_70): pass a pointer to "
               "the data instead"},
      WordHint{"\"auto\" is not allowed here",
               "parameters of type auto need std=\"c++20\", and make the kernel a template"},
      WordHint{"'auto' not allowed",
               "parameters of type auto need std=\"c++20\", and make the kernel a template"},
      WordHint{"calling a __host__ function",
               "mark the function __device__; functions of the host cannot run in a kernel"}};
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const WordHint& row) {
    return message.find(row.word) != std::string_view::npos;
  });
  return found == kRows.end() ? std::string_view() : found->hint;
}

std::string hint_for(std::string_view message, std::span<const std::string> folders) {
  if (const auto hint = language_hint(message); !hint.empty()) return std::string(hint);
  if (message.find("not supported on .target") != std::string_view::npos ||
      message.find("requires .target") != std::string_view::npos ||
      message.find("is_not_supported_before_SM_90") != std::string_view::npos ||
      message.find("is_only_supported_on_SM_90a") != std::string_view::npos) {
    return architecture_hint(message);
  }
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

namespace {

/// Whether an error is in a CUDA header of use only to host code.
bool is_host_algorithm(std::string_view file, std::string_view message) {
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  return has(file, "/thrust/") || has(file, "/cub/device/") || has(file, "/cuda/experimental/") ||
         has(message, "is not supported when compiling with NVRTC") ||
         has(message, "__host__ function is not allowed in JIT mode") ||
         has(message, "cuda::stream_ref") || has(message, "has no member \"stream_ref\"");
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The hint for an error on a line of CUDA's own text with the name of one of the user's macros.
std::string macro_hint(std::string_view line, const std::set<std::string>& macros) {
  while (!line.empty()) {
    const auto begin = std::find_if(line.begin(), line.end(), is_word);
    const auto end = std::find_if_not(begin, line.end(), is_word);
    const std::string word(begin, end);
    if (macros.contains(word)) {
      return format("the macro {} replaces a name in CUDA's own headers: rename the macro", word);
    }
    line.remove_prefix(static_cast<std::size_t>(end - line.begin()));
  }
  return {};
}

}  // namespace

void add_hints(std::vector<Diagnostic>& diagnostics, std::span<const std::string> header_folders,
               const std::set<std::string>& macros) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (!diagnostic.hint.empty() || diagnostic.severity != Severity::error) continue;
    // If such a library is installed, the error is in its own headers.
    const std::string_view file = diagnostic.file;
    const bool in_folders =
        std::any_of(header_folders.begin(), header_folders.end(),
                    [&](const std::string& folder) { return file.starts_with(folder); });
    const std::string_view name = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
    if (in_folders || file == kPreambleFile) {
      diagnostic.hint = macro_hint(diagnostic.caret.substr(0, diagnostic.caret.find('\n')), macros);
      if (!diagnostic.hint.empty()) continue;
    }
    if (in_folders && look_up(kHeaderHints, name) == kHostLibrary) {
      diagnostic.hint = kHostLibrary;
    } else if (in_folders && is_host_algorithm(file, diagnostic.message)) {
      diagnostic.hint = kHostAlgorithm;
    } else {
      diagnostic.hint = hint_for(diagnostic.message, header_folders);
    }
  }
}

}  // namespace kernwright
