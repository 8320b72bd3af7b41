// One kernel per pair of types, compiled when first needed.
#include "kernels_src/cast/cast.h"

#include "base/format.h"
#include "jit/program.h"
#include "kernels_src/cast/cast.cu.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/include/small_floats.cuh.h"
#include "kernels_src/include/strided.cuh.h"
#include "kernels_src/strided_plan.h"

#include <array>
#include <map>
#include <mutex>
#include <tuple>

namespace kernwright::kernels {

namespace {

// In the order of ScalarType; the names are those of cast.cu.
constexpr std::array<const char*, kScalarTypeCount> kDeviceTypes = {
    "Bool",    "Int8",       "Int16",      "Int32",     "Int64",      "UInt8",
    "UInt16",  "UInt32",     "UInt64",     "Float16",   "BFloat16",   "Float32",
    "Float64", "Float8E4M3", "Float8E5M2", "Complex64", "Complex128",
};

const Program& cast_program() {
  static const auto* const program = [] {
    ProgramOptions options;
    options.headers = {{"kernwright/strided.cuh", text::strided_cuh},
                       {"kernwright/small_floats.cuh", text::small_floats_cuh}};
    return new Program({.text = text::cast_cu, .name = "cast.cu", .directory = {}}, options);
  }();
  return *program;
}

/// Kernels by pair of types and width of the index; leaked on purpose, as modules outlive `main`.
const LazyKernel& cast_kernel(ScalarType to, ScalarType from, bool wide) {
  static auto* const mutex = new std::mutex;
  static auto* const kernels = new std::map<std::tuple<ScalarType, ScalarType, bool>, LazyKernel>;
  const std::lock_guard lock(*mutex);
  const std::tuple key(to, from, wide);
  auto found = kernels->find(key);
  if (found == kernels->end()) {
    const std::string name = format("cast<{}, {}, {}>", kDeviceTypes[static_cast<std::size_t>(to)],
                                    kDeviceTypes[static_cast<std::size_t>(from)],
                                    wide ? "unsigned long long" : "unsigned int");
    found = kernels->emplace(key, LazyKernel(cast_program(), name)).first;
  }
  return found->second;
}

class CastLauncher final : public StridedLauncher {
 public:
  CastLauncher(Device& device, ScalarType to, ScalarType from)
      : device_(device), to_(to), from_(from) {}

 protected:
  const Kernel& kernel(bool wide) const override {
    return cast_kernel(to_, from_, wide).on(device_);
  }

 private:
  Device& device_;
  ScalarType to_, from_;
};

/// Whether each element lies at a multiple of its size, as the kernels read it.
bool is_aligned(const Array& array) {
  const std::size_t size = scalar_size(array.type());
  std::uint64_t bits = array.address();
  for (const std::int64_t stride : array.strides()) bits |= static_cast<std::uint64_t>(stride);
  return bits % size == 0;
}

}  // namespace

Array cast(const Array& array, ScalarType type, const Stream& stream) {
  if (type == array.type() || !is_aligned(array)) {
    Array same = copy(array, stream);
    return type == array.type() ? same : cast(same, type, stream);
  }
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, array.shape(), type, stream);
  if (array.size() == 0) return result;
  const StridedPlan plan = plan_strided(result.address(), result.strides(), array.address(),
                                        array.strides(), array.shape());
  CastLauncher(device, type, array.type()).launch(plan, on);
  result.use_on(on);
  array.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
