// The table of a family's instances.
#include "kernels_src/family.h"

#include "kernels_src/device_headers.h"

#include <mutex>
#include <utility>

namespace kernwright::kernels {
namespace {

// In the order of ScalarType; the names are those of include/elements.cuh.
constexpr std::array<const char*, kScalarTypeCount> kDeviceTypes = {
    "Bool",    "Int8",       "Int16",      "Int32",     "Int64",      "UInt8",
    "UInt16",  "UInt32",     "UInt64",     "Float16",   "BFloat16",   "Float32",
    "Float64", "Float8E4M3", "Float8E5M2", "Complex64", "Complex128",
};

}  // namespace

const char* device_type(ScalarType type) noexcept {
  return kDeviceTypes[static_cast<std::size_t>(type)];
}

Family::Family(std::string name, std::string_view text)
    : program_([&] {
        register_device_headers();
        return Program({.text = std::string(text), .name = std::move(name), .directory = {}});
      }()) {}

const LazyKernel* Family::find(std::uint64_t key) const {
  const std::shared_lock lock(mutex_);
  const auto found = instances_.find(key);
  return found == instances_.end() ? nullptr : found->second.get();
}

const LazyKernel& Family::add(std::uint64_t key, const std::string& expression) const {
  auto made = std::make_unique<LazyKernel>(program_, expression);
  const std::unique_lock lock(mutex_);
  return *instances_.try_emplace(key, std::move(made)).first->second;
}

}  // namespace kernwright::kernels
