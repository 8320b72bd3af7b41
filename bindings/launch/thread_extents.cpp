// Blocks and grids for a number of threads along each axis.
#include "bindings/launch/thread_extents.h"

#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/python_support.h"

#include <algorithm>
#include <bit>

namespace kernwright::python {
namespace {

namespace py = pybind11;

constexpr std::int64_t kWarp = 32;
constexpr std::array<std::int64_t, 3> kMostThreads{1024, 1024, 64};
constexpr std::array<std::int64_t, 3> kMostBlocks{0x7fffffff, 65535, 65535};

/// The least power of two that covers `threads`, at most `most`.
std::int64_t covering(std::int64_t threads, std::int64_t most) {
  if (threads >= most) return most;
  const auto power = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(threads, 1)));
  return std::min(static_cast<std::int64_t>(power), most);
}

std::int64_t extent_argument(py::handle value, const ThreadExtents& extents) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
    throw ArgumentError(
        format("forall(n) wants a number of threads, or a tuple of up to three of them, got {}",
               extents.count == 0 ? type_name(value) : "a tuple with " + type_name(value)));
  }
  return py::int_(py::reinterpret_borrow<py::object>(value)).cast<std::int64_t>();
}

}  // namespace

std::string ThreadExtents::to_string() const {
  if (count == 1) return format("{}", threads[0]);
  if (count == 2) return format("({}, {})", threads[1], threads[0]);
  return format("({}, {}, {})", threads[2], threads[1], threads[0]);
}

void ThreadExtents::choose(LaunchConfig& config, int block) const {
  std::array<std::int64_t, 3> size{block, 1, 1};
  if (count > 1) {
    // A warp along x, so that it reads neighbours; then rows, then planes; what is left widens x.
    size[0] = covering(threads[0], std::min<std::int64_t>(kWarp, block));
    size[1] = covering(threads[1], block / size[0]);
    size[2] = covering(threads[2], std::min(block / (size[0] * size[1]), kMostThreads[2]));
    while (size[0] < threads[0] && 2 * size[0] * size[1] * size[2] <= block) size[0] *= 2;
  }
  std::array<std::int64_t, 3> blocks{};
  for (std::size_t axis = 0; axis < blocks.size(); ++axis) {
    blocks[axis] = threads[axis] / size[axis] + (threads[axis] % size[axis] != 0 ? 1 : 0);
    if (blocks[axis] <= kMostBlocks[axis]) continue;
    throw LaunchConfigError(format(
        "forall({}): {} blocks of {} along {}, above the limit of {}", to_string(), blocks[axis],
        counted(static_cast<std::size_t>(size[axis]), "thread"), "xyz"[axis], kMostBlocks[axis]));
  }
  const auto narrow = [](const std::array<std::int64_t, 3>& wide) {
    return Dim3{static_cast<std::uint32_t>(wide[0]), static_cast<std::uint32_t>(wide[1]),
                static_cast<std::uint32_t>(wide[2])};
  };
  config.block = narrow(size);
  config.grid = narrow(blocks);
}

ThreadExtents thread_extents_argument(py::handle value) {
  ThreadExtents extents;
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) {
    extents.threads[0] = extent_argument(value, extents);
    extents.count = 1;
  } else {
    const auto items = py::reinterpret_borrow<py::sequence>(value);
    extents.count = items.size();
    if (extents.count < 1 || extents.count > 3) {
      throw ArgumentError(format("forall({}): one to three numbers of threads are possible",
                                 short_repr(value.ptr())));
    }
    for (std::size_t i = 0; i < extents.count; ++i) {
      extents.threads[extents.count - 1 - i] = extent_argument(items[i], extents);
    }
  }
  if (*std::min_element(extents.threads.begin(), extents.threads.end()) < 0) {
    throw LaunchConfigError(
        format("forall({}): the number of threads must be at least 0", extents.to_string()));
  }
  return extents;
}

}  // namespace kernwright::python
