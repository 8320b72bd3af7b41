// One thread for an element.
#include "kernels_src/movement/sequence.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/movement/sequence.cu.h"
#include "kernels_src/walk_plan.h"

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSequenceThreads = 256;

const LazyKernel& sequence_kernel(ScalarType type, bool whole) {
  static const auto& family = *new Family("sequence.cu", text::sequence_cu);
  return family.instance(InstanceKey().type(type).add(whole, 1), [&] {
    return format("sequence<{}, {}>", device_type(type), whole ? "Int64" : "Float64");
  });
}

template <typename Number>
void launch_sequence(const Array& to, Number start, Number step, Number last, bool ends, bool whole,
                     const Stream& stream) {
  const bool is_integer = is_signed_integer(to.type()) || is_unsigned_integer(to.type());
  const bool fits = whole ? is_integer : is_floating(to.type());
  if (!fits || !to.is_contiguous() || to.read_only()) {
    throw InvalidArgument(format("{} cannot be filled with a sequence of {}", to.identify(),
                                 whole ? "integers" : "floats"));
  }
  if (to.size() == 0) return;
  Device& device = to.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const LaunchConfig config{.grid = {walk_blocks(to.size(), kSequenceThreads)},
                            .block = {kSequenceThreads},
                            .stream = on};
  launch(sequence_kernel(to.type(), whole).on(device), config, to.address(), start, step, last,
         ends, to.size());
  to.use_on(on);
}

}  // namespace

void fill_sequence(const Array& to, double start, double step, std::optional<double> last,
                   const Stream& stream) {
  launch_sequence(to, start, step, last.value_or(0.0), last.has_value(), false, stream);
}

void fill_sequence(const Array& to, std::int64_t start, std::int64_t step, const Stream& stream) {
  launch_sequence(to, start, step, std::int64_t{0}, false, true, stream);
}

}  // namespace kernwright::kernels
