// A kernel of the corpus with its launch and its inputs, as cases.json describes them.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// How two results are compared: bit for bit, or with a tolerance.
struct Comparison {
  bool exact = true;
  double relative = 0, absolute = 0;
};

/// An argument: a number (`count` 0) or an array on the device.
struct CaseArgument {
  std::string type;  ///< "f32", "f64", "i8" ... "u64", "f16", "bf16"
  std::size_t count = 0;
  std::vector<std::byte> bytes;  ///< the number, or the array's initial values
  bool is_output = false;        ///< the kernel may change it; other arrays must stay as they were
  bool order_dependent = false;  ///< the result depends on the order of atomics: not compared
  Comparison comparison;         ///< with the reference
  Comparison on_gpu;             ///< with what a GPU computed
};

struct KernelCase {
  std::string name, source, kernel, reference;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<CaseArgument> arguments;
};

/// The arrays of a case after a launch, one for each argument (numbers as they were).
using Buffers = std::vector<std::vector<std::byte>>;

/// All cases of cases.json. Throws std::exception for a file that is not understood.
std::vector<KernelCase> load_cases();

/// Text of <source>.nvrtc<version>.<variant>.ptx, a file of tests/sim/ptx.tar.xz.
std::string read_ptx(const std::string& file_name);
/// File names of the corpus that begin with `source` + ".nvrtc" and end with `suffix`.
std::vector<std::string> ptx_files(std::string_view source, std::string_view suffix);

/// Loads `ptx`, launches the case in the current context, returns all arrays. Throws
/// std::runtime_error that names the failed call.
Buffers run_case(const DriverApi& api, const KernelCase& kernel_case, const std::string& ptx);

/// Initial values of all arguments.
Buffers inputs_of(const KernelCase& kernel_case);

/// Typed view of bytes.
template <typename T>
std::vector<T> values(const std::vector<std::byte>& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
  return result;
}
template <typename T>
T value(const std::vector<std::byte>& bytes) {
  T result;
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}
template <typename T>
void assign(std::vector<std::byte>& bytes, const std::vector<T>& from) {
  const auto* begin = reinterpret_cast<const std::byte*>(from.data());
  bytes.assign(begin, begin + from.size() * sizeof(T));
}

/// Bits of a half. Exact for numbers of at most 11 significant bits in the normal range.
std::uint16_t to_half(double number);

/// Where and by how much the arrays differ, empty when they agree.
std::string difference(const std::string& type, const std::vector<std::byte>& got,
                       const std::vector<std::byte>& expected, const Comparison& comparison);

}  // namespace kernwright::sim
