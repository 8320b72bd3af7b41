// One kernel per pair of types.
#include "kernels_src/cast/cast.h"

#include "base/format.h"
#include "kernels_src/cast/cast.cu.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/strided_plan.h"

namespace kernwright::kernels {

namespace {

const LazyKernel& cast_kernel(ScalarType to, ScalarType from, bool wide) {
  static const auto& family = *new Family("cast.cu", text::cast_cu);
  return family.instance(InstanceKey().type(to).type(from).add(wide, 1), [&] {
    return format("cast<{}, {}, {}>", device_type(to), device_type(from),
                  wide ? "unsigned long long" : "unsigned int");
  });
}

class CastLauncher final : public StridedLauncher {
 public:
  CastLauncher(Device& device, ScalarType to, ScalarType from)
      : device_(device), to_(to), from_(from) {}

 protected:
  const Kernel& kernel(bool wide) const override {
    return cast_kernel(to_, from_, wide).on(device_);
  }
  int elements_each(std::int64_t count) const override {
    return choose(LaunchChoice::cast_elements, device_, count, scalar_size(to_), 1);
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
