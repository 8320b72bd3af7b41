// Chooses among rows in registers, rows that blocks share, and columns.
#include "kernels_src/softmax/softmax_backward.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/row_plan.h"
#include "kernels_src/softmax/softmax_backward.cu.h"

#include <functional>
#include <numeric>

namespace kernwright::kernels {
namespace {

enum class SoftmaxGradientPart { rows, sums, finish, columns };

struct SoftmaxGradient {
  Array dx, dy, y;
  RowExtent extent;
  bool log;
  Stream stream;

  Device& device() const { return y.device(); }
  LaunchConfig config(std::uint32_t blocks, int threads) const {
    return {.grid = {blocks}, .block = {static_cast<std::uint32_t>(threads)}, .stream = stream};
  }
};

const Kernel& softmax_gradient_part(SoftmaxGradientPart which, const SoftmaxGradient& job,
                                    const RowTile& tile) {
  static const auto& family = *new Family("softmax_backward.cu", text::softmax_backward_cu);
  const auto key = InstanceKey()
                       .add(which, 2)
                       .type(job.y.type())
                       .add(job.log, 1)
                       .add(tile.pack, 5)
                       .add(tile.items, 7)
                       .add(tile.width, 11)
                       .add(tile.threads, 11);
  const auto name = [&] {
    const char* const type = device_type(job.y.type());
    const auto finish = [&] {
      return format("softmax_backward_finish<{}, {}, {}, {}, {}>", type, tile.pack, tile.items,
                    tile.threads, job.log);
    };
    switch (which) {
      case SoftmaxGradientPart::rows:
        return std::vector{format("softmax_backward_rows<{}, {}, {}, {}, {}, {}>", type, tile.pack,
                                  tile.items, tile.width, tile.threads, job.log)};
      case SoftmaxGradientPart::sums:
        return std::vector{format("softmax_backward_sums<{}, {}, {}, {}, {}>", type, tile.pack,
                                  tile.items, tile.threads, job.log),
                           finish()};
      case SoftmaxGradientPart::finish:
        return std::vector{finish()};
      case SoftmaxGradientPart::columns:
        break;
    }
    return std::vector{format("softmax_backward_columns<{}, {}>", type, job.log)};
  };
  return family.instance(key, name).on(job.device());
}

template <typename C>
void share_softmax_gradient(const SoftmaxGradient& job, int pack, C scale) {
  const RowChunks plan = chunk_rows(job.device(), job.extent, pack, 8);
  const ScalarType type = sizeof(C) == 8 ? ScalarType::float64 : ScalarType::float32;
  const Array sums = Array::empty(job.device(), {job.extent.rows, plan.chunks}, type, job.stream);
  const RowTile tile{.pack = pack, .items = plan.items, .width = 1, .threads = kChunkThreads};
  const LaunchConfig config = job.config(plan.blocks, kChunkThreads);
  launch(softmax_gradient_part(SoftmaxGradientPart::sums, job, tile), config, sums.address(),
         job.dy.address(), job.y.address(), job.extent.n, plan.chunks);
  launch(softmax_gradient_part(SoftmaxGradientPart::finish, job, tile), config, job.dx.address(),
         job.dy.address(), job.y.address(), job.extent.n, plan.chunks, scale, sums.address());
  sums.use_on(job.stream);
}

template <typename C>
void run_softmax_gradient_rows(const SoftmaxGradient& job, C scale) {
  const int pack = common_pack(job.extent.n, {&job.dx, &job.dy, &job.y}, job.y.ndim());
  const int values = choose(LaunchChoice::softmax_gradient_values, job.device(), job.extent.n,
                            scalar_size(job.y.type()), sizeof(C) == 8 ? 4 : 8);
  const RowTile tile = tile_rows(job.extent.n, pack, values);
  if (tile.items == 0 || are_few_and_long(job.device(), job.extent)) {
    share_softmax_gradient(job, pack, scale);
    return;
  }
  launch(softmax_gradient_part(SoftmaxGradientPart::rows, job, tile),
         job.config(tile.blocks(job.extent.rows), tile.threads), job.dx.address(), job.dy.address(),
         job.y.address(), job.extent.rows, static_cast<std::int32_t>(job.extent.n), scale);
}

template <typename C>
void run_softmax_gradient_columns(const SoftmaxGradient& job, std::int64_t inner, C scale) {
  constexpr int kThreads = 256, kColumns = 32;
  const RowTile groups{.width = 1, .threads = kColumns}, no_rows;
  launch(softmax_gradient_part(SoftmaxGradientPart::columns, job, no_rows),
         job.config(groups.blocks(job.extent.rows), kThreads), job.dx.address(), job.dy.address(),
         job.y.address(), job.extent.rows, job.extent.n, inner, scale);
}

template <typename C>
void run_softmax_gradient(const SoftmaxGradient& job, int axis, C scale) {
  const Shape& shape = job.y.shape();
  const std::int64_t inner =
      std::accumulate(shape.begin() + axis + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  if (inner > 1) {
    run_softmax_gradient_columns(job, inner, scale);
  } else {
    run_softmax_gradient_rows(job, scale);
  }
}

Array softmax_operand(const Array& array, const Stream& stream) {
  return array.is_contiguous() && common_pack(1, {&array}, 0) > 0 ? array : copy(array, stream);
}

}  // namespace

Array softmax_backward(const Array& dy, const Array& y, int axis, double scale, bool log,
                       const Stream& stream) {
  const char* const what = log ? "log_softmax_backward()" : "softmax_backward()";
  require_computed(y, what, "y");
  if (dy.shape() != y.shape() || dy.type() != y.type() || &dy.device() != &y.device()) {
    throw InvalidArgument(format(
        "Incompatible dimensions: {} takes dy and y of one shape and dtype on the same device, "
        "got {} and {}",
        what, dy.identify(), y.identify()));
  }
  axis = normalize_axis(axis, y.ndim());
  const Stream on = stream ? stream : Stream::legacy(y.device());
  const Array result = Array::empty(y.device(), y.shape(), y.type(), on);
  if (y.size() == 0) return result;
  const std::int64_t n = y.shape()[static_cast<std::size_t>(axis)];
  const SoftmaxGradient job{.dx = result,
                            .dy = softmax_operand(dy, on),
                            .y = softmax_operand(y, on),
                            .extent = {y.size() / n, n},
                            .log = log,
                            .stream = on};
  if (y.type() == ScalarType::float64) {
    run_softmax_gradient(job, axis, scale);
  } else {
    run_softmax_gradient(job, axis, static_cast<float>(scale));
  }
  for (const Array* const each : {&job.dx, &job.dy, &job.y}) each->use_on(on);
  return result;
}

}  // namespace kernwright::kernels
