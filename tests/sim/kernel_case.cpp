// Reads cases.json, makes the inputs and launches.
#include "sim/kernel_case.h"

#include "base/format.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kernwright::sim {
namespace {

using Json = nlohmann::json;

/// KW_SIM_TEST_DATA in the environment wins, for a program that was built elsewhere.
std::filesystem::path data_folder() {
  const char* const elsewhere = std::getenv("KW_SIM_TEST_DATA");
  return elsewhere != nullptr ? elsewhere : KW_SIM_TEST_DATA;
}

/// The unpacked texts of ptx.tar.xz: `ptx` in that folder, else the build's.
std::filesystem::path ptx_folder() {
  const char* const elsewhere = std::getenv("KW_SIM_TEST_DATA");
  return elsewhere != nullptr ? std::filesystem::path(elsewhere) / "ptx" : KW_PTX_FOLDER;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// SplitMix64: the same numbers in any language.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

template <typename T>
void store(std::vector<std::byte>& bytes, T number) {
  const auto* begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

void append(std::vector<std::byte>& bytes, const std::string& type, double number) {
  if (type == "f32") return store(bytes, static_cast<float>(number));
  if (type == "f64") return store(bytes, number);
  if (type == "f16") return store(bytes, to_half(number));
  const auto integer = static_cast<std::int64_t>(number);
  if (type == "i8" || type == "u8") return store(bytes, static_cast<std::uint8_t>(integer));
  if (type == "i16" || type == "u16") return store(bytes, static_cast<std::uint16_t>(integer));
  if (type == "i32" || type == "u32") return store(bytes, static_cast<std::uint32_t>(integer));
  if (type == "i64" || type == "u64") return store(bytes, static_cast<std::uint64_t>(integer));
  throw std::runtime_error("cases.json: unknown type " + type);
}

std::size_t size_of(const std::string& type) {
  return static_cast<std::size_t>(std::stoi(type.substr(type.find_first_of("0123456789")))) / 8;
}

std::vector<std::byte> make_array(const Json& row, const std::string& type, std::size_t count) {
  std::vector<std::byte> bytes;
  const std::string fill = row.value("fill", "zero");
  Random random(row.value("seed", std::uint64_t{1}));
  const double low = row.value("low", 0.0), high = row.value("high", 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (fill == "zero") append(bytes, type, 0);
    if (fill == "uniform") append(bytes, type, low + (high - low) * random.unit());
    if (fill == "integer") append(bytes, type, low + std::floor((high - low + 1) * random.unit()));
    if (fill == "sequence") append(bytes, type, low + static_cast<double>(i));
    if (fill == "list") append(bytes, type, row.at("values").at(i).get<double>());
    if (fill == "bits") {
      const std::uint64_t word = random.bits();
      const auto* begin = reinterpret_cast<const std::byte*>(&word);
      bytes.insert(bytes.end(), begin, begin + size_of(type));
    }
  }
  if (bytes.size() != count * size_of(type)) throw std::runtime_error("cases.json: fill " + fill);
  return bytes;
}

Comparison read_comparison(const Json& row) {
  if (row.is_string()) return {};
  return {false, row.value("relative", 0.0), row.value("absolute", 0.0)};
}

CaseArgument read_argument(const Json& row) {
  CaseArgument argument;
  argument.type = row.at("type").get<std::string>();
  if (row.contains("value")) {
    append(argument.bytes, argument.type, row.at("value").get<double>());
    return argument;
  }
  argument.count = row.at("count").get<std::size_t>();
  argument.bytes = make_array(row, argument.type, argument.count);
  argument.order_dependent = row.value("order_dependent", false);
  argument.is_output = row.contains("compare");
  if (argument.is_output) argument.comparison = read_comparison(row.at("compare"));
  argument.on_gpu = argument.comparison;
  if (row.contains("on_gpu")) argument.on_gpu = read_comparison(row.at("on_gpu"));
  return argument;
}

KernelCase read_case(const Json& row) {
  KernelCase result;
  result.name = row.at("name").get<std::string>();
  result.source = row.value("source", result.name);
  result.kernel = row.value("kernel", result.source);
  result.reference = row.value("reference", std::string{});
  const auto read_shape = [&](const char* key, std::uint32_t* shape) {
    const Json& list = row.at(key);
    for (std::size_t axis = 0; axis < list.size(); ++axis) shape[axis] = list[axis];
  };
  read_shape("grid", result.grid);
  read_shape("block", result.block);
  result.shared_bytes = row.value("shared", 0u);
  for (const Json& argument : row.at("args")) result.arguments.push_back(read_argument(argument));
  return result;
}

void check(const DriverApi& api, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = result_name(result);
  Fault report;
  const bool told = api.kwTakeReport(nullptr, &report) == CUDA_SUCCESS;
  throw std::runtime_error(format("{}: {}\n{}", call, name == nullptr ? "unknown" : name,
                                  told ? report.to_string() : ""));
}

CUmodule load(const DriverApi& api, const std::string& ptx) {
  std::array<char, 4096> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* option_values[] = {log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size()})};
  CUmodule module = nullptr;
  const CUresult result = api.cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, option_values);
  check(api, result, format("cuModuleLoadDataEx ({})", log.data()).c_str());
  return module;
}

/// Device arrays of a launch, freed at the end.
class DeviceArrays {
 public:
  explicit DeviceArrays(const DriverApi& api) : api_(api) {}
  ~DeviceArrays() {
    for (const CUdeviceptr address : addresses_) api_.cuMemFree(address);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  CUdeviceptr add(const std::vector<std::byte>& bytes) {
    CUdeviceptr address = 0;
    check(api_, api_.cuMemAlloc(&address, bytes.size()), "cuMemAlloc");
    addresses_.push_back(address);
    check(api_, api_.cuMemcpyHtoD(address, bytes.data(), bytes.size()), "cuMemcpyHtoD");
    return address;
  }

 private:
  const DriverApi& api_;
  std::vector<CUdeviceptr> addresses_;
};

template <typename T>
std::string first_difference(const std::vector<std::byte>& got_bytes,
                             const std::vector<std::byte>& expected_bytes,
                             const Comparison& comparison) {
  const auto got = values<T>(got_bytes), expected = values<T>(expected_bytes);
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    bool same = std::memcmp(&got[i], &expected[i], sizeof(T)) == 0;
    if (!same && !comparison.exact) {
      const auto g = static_cast<double>(got[i]), e = static_cast<double>(expected[i]);
      same = std::fabs(g - e) <= comparison.absolute + comparison.relative * std::fabs(e) ||
             (std::isnan(g) && std::isnan(e));
    }
    if (same) continue;
    if (++wrong == 1) first = format("element {}: got {}, expected {}", i, got[i], expected[i]);
  }
  return wrong == 0 ? "" : format("{} of {} elements differ; {}", wrong, got.size(), first);
}

}  // namespace

std::uint16_t to_half(double number) {
  if (number == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(number), &exponent);
  const auto fraction = static_cast<unsigned>(mantissa * 2048) & 1023;
  return static_cast<std::uint16_t>((number < 0 ? 0x8000u : 0u) |
                                    static_cast<unsigned>(exponent + 14) << 10 | fraction);
}

std::vector<KernelCase> load_cases() {
  std::vector<KernelCase> cases;
  const Json document = Json::parse(read_file(data_folder() / "cases.json"));
  for (const Json& row : document.at("cases")) {
    cases.push_back(read_case(row));
  }
  return cases;
}

std::string read_ptx(const std::string& file_name) { return read_file(ptx_folder() / file_name); }

std::vector<std::string> ptx_files(std::string_view source, std::string_view suffix) {
  std::vector<std::string> names;
  const std::string prefix = source.empty() ? "" : std::string(source) + ".nvrtc";
  for (const auto& entry : std::filesystem::directory_iterator(ptx_folder())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(suffix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Buffers inputs_of(const KernelCase& kernel_case) {
  Buffers buffers;
  for (const CaseArgument& argument : kernel_case.arguments) buffers.push_back(argument.bytes);
  return buffers;
}

Buffers run_case(const DriverApi& api, const KernelCase& kernel_case, const std::string& ptx) {
  const CUmodule module = load(api, ptx);
  Buffers buffers = inputs_of(kernel_case);
  {
    DeviceArrays arrays(api);
    std::vector<CUdeviceptr> addresses(buffers.size());
    std::vector<void*> parameters(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      parameters[i] = buffers[i].data();
      if (kernel_case.arguments[i].count == 0) continue;
      addresses[i] = arrays.add(buffers[i]);
      parameters[i] = &addresses[i];
    }
    CUfunction function = nullptr;
    check(api, api.cuModuleGetFunction(&function, module, kernel_case.kernel.c_str()),
          "cuModuleGetFunction");
    const auto& g = kernel_case.grid;
    const auto& b = kernel_case.block;
    check(api,
          api.cuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2], kernel_case.shared_bytes,
                             nullptr, parameters.data(), nullptr),
          "cuLaunchKernel");
    check(api, api.cuCtxSynchronize(), "cuCtxSynchronize");
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (addresses[i] == 0) continue;
      check(api, api.cuMemcpyDtoH(buffers[i].data(), addresses[i], buffers[i].size()),
            "cuMemcpyDtoH");
    }
  }
  check(api, api.cuModuleUnload(module), "cuModuleUnload");
  return buffers;
}

std::string difference(const std::string& type, const std::vector<std::byte>& got,
                       const std::vector<std::byte>& expected, const Comparison& comparison) {
  if (got.size() != expected.size()) return format("{} bytes, not {}", got.size(), expected.size());
  if (type == "f32") return first_difference<float>(got, expected, comparison);
  if (type == "f64") return first_difference<double>(got, expected, comparison);
  const Comparison exact;
  if (size_of(type) == 1) return first_difference<std::uint8_t>(got, expected, exact);
  if (size_of(type) == 2) return first_difference<std::uint16_t>(got, expected, exact);
  if (type == "i32") return first_difference<std::int32_t>(got, expected, exact);
  if (size_of(type) == 4) return first_difference<std::uint32_t>(got, expected, exact);
  return first_difference<std::int64_t>(got, expected, exact);
}

}  // namespace kernwright::sim
