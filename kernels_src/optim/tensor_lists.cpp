// Checks of lists of tensors, their groups by type, and the launch of a table.
#include "kernels_src/optim/tensor_lists.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/optim/optimizer.cu.h"

#include <array>
#include <tuple>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kOptimizerThreads = 256;

bool is_optimizer_type(ScalarType type) { return is_floating(type) && scalar_size(type) > 1; }

}  // namespace

const Family& optimizer_family() {
  static const auto& made = *new Family("optimizer.cu", text::optimizer_cu);
  return made;
}

bool OptimizerGroup::operator<(const OptimizerGroup& o) const {
  return std::tie(param, grad, state, width) < std::tie(o.param, o.grad, o.state, o.width);
}

void require_optimizer_tensor(const Array& array, const Array& param, const char* name,
                              std::size_t index, bool written) {
  if (array.shape() != param.shape())
    throw InvalidArgument(format("{}[{}] has shape {}, and params[{}] {}", name, index,
                                 shape_to_string(array.shape()), index,
                                 shape_to_string(param.shape())));
  if (!is_optimizer_type(array.type()))
    throw InvalidArgument(format("{}[{}] is float16, bfloat16, float32 or float64, not {}", name,
                                 index, scalar_name(array.type())));
  if (&array.device() != &param.device())
    throw InvalidArgument(format("{}[{}] is {}, and params[{}] {}: all must be on the same device",
                                 name, index, array.identify(), index, param.identify()));
  if (written && (!array.is_contiguous() || array.read_only()))
    throw InvalidArgument(
        format("{}[{}] is written in place: it must be contiguous and not read-only", name, index));
}

void require_optimizer_list(const std::vector<Array>& list, const std::vector<Array>& params,
                            const char* name, bool written) {
  if (list.size() != params.size())
    throw InvalidArgument(
        format("{} has {} tensors, and params {}", name, list.size(), params.size()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    require_optimizer_tensor(list[i], params[i], name, i, written);
    if (&params[i].device() != &params[0].device())
      throw InvalidArgument(format("all tensors must be on the same device: {} and {}",
                                   params[0].identify(), params[i].identify()));
  }
}

LaunchConfig table_config(const TensorTable& table, const Stream& on) {
  LaunchConfig config;
  config.grid = {table.block_end[static_cast<std::size_t>(table.count - 1)]};
  config.block = {kOptimizerThreads};
  config.stream = on;
  return config;
}

std::vector<Array> contiguous_tensors(const std::vector<Array>& arrays, const Stream& stream) {
  std::vector<Array> made;
  made.reserve(arrays.size());
  for (const Array& each : arrays) made.push_back(each.is_contiguous() ? each : copy(each, stream));
  return made;
}

OptimizerGroups type_groups(const std::vector<Array>& to, const std::vector<Array>& from) {
  OptimizerGroups groups;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::array<const Array*, 2> both = {&to[i], &from[i]};
    groups[{to[i].type(), from[i].type(), to[i].type(), table_width(both)}].push_back(i);
  }
  return groups;
}

void use_tensors(const std::vector<Array>& arrays, const Stream& on) {
  for (const Array& each : arrays) each.use_on(on);
}

}  // namespace kernwright::kernels
