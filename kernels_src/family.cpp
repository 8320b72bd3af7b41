// The table of a family's instances.
#include "kernels_src/family.h"

#include "base/format.h"
#include "core/device.h"
#include "jit/compile_only.h"
#include "kernels_src/device_headers.h"

#include <memory>
#include <stdexcept>
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

bool overlaps_launches(const Device& device) { return device.compute_capability().major >= 9; }

bool overlaps_launches(const Device& device, std::int64_t blocks) {
  constexpr std::int64_t kMostPerProcessor = 8;
  return overlaps_launches(device) &&
         blocks <= kMostPerProcessor * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

bool overlaps_small_launches(const Device& device, std::int64_t blocks) {
  return overlaps_launches(device) &&
         blocks < device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

void launch_arguments(const Kernel& kernel, const LaunchConfig& config,
                      std::span<void* const> arguments) {
  if (CompileOnly::current() == nullptr) [[likely]]
    kernel.launch(config, arguments);
}

const char* device_type(ScalarType type) noexcept {
  return kDeviceTypes[static_cast<std::size_t>(type)];
}

Family::Family(std::string name, std::string_view text, ProgramScope scope)
    : program_([&] {
        register_device_headers();
        // Precompiled headers would cost more than these small ones do.
        ProgramOptions options;
        options.pch = Tristate::off;
        return Program({.text = std::string(text), .name = std::move(name), .directory = {}},
                       std::move(options), scope);
      }()) {}

const LazyKernel& Family::add(std::uint64_t key, std::vector<std::string> names) const {
  std::string first = std::move(names.front());
  names.erase(names.begin());
  auto made = std::make_unique<LazyKernel>(program_, std::move(first), std::move(names));
  return instances_.add(key, std::move(made));
}

void InstanceKey::refuse(std::uint64_t number, int bits) const {
  throw std::logic_error(
      format("a kernel's key has no place for {} in {} bits: {} of 64 bits are used", number, bits,
             used_));
}

}  // namespace kernwright::kernels
