// What the recurrences of both ways share: checks of their arrays, and launches.
#pragma once

#include "array/array.h"
#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/recurrent/recurrence_plan.h"
#include "kernels_src/recurrent/recurrent.h"

#include <array>
#include <string>
#include <vector>

namespace kernwright::kernels {

/// As the kernels have it.
struct RecurrenceShape {
  std::int64_t first, steps;
  CUdeviceptr meetings;
  std::int32_t hidden, batch, units, rows;
};

inline int gate_count(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : 3; }

/// A row-major array of that shape, type and device. Throws InvalidArgument, which names it.
Array require_recurrent(const Array& array, const char* name, const Shape& shape, const Array& like,
                        const Stream& stream);
/// The same for an array that is written: it must be row-major itself.
void require_written(const Array& array, const char* name, const Shape& shape, const Array& like);

inline CUdeviceptr address_or_null(const std::optional<Array>& array) {
  return array ? array->address() : 0;
}
inline std::array<CUdeviceptr, 2> array_addresses(const std::vector<Array>& arrays) {
  std::array<CUdeviceptr, 2> made{};
  for (std::size_t i = 0; i < arrays.size() && i < 2; ++i) made[i] = arrays[i].address();
  return made;
}

inline void use_arrays(const Stream& stream, const Array& array) { array.use_on(stream); }
inline void use_arrays(const Stream& stream, const std::optional<Array>& array) {
  if (array) array->use_on(stream);
}
inline void use_arrays(const Stream& stream, const std::vector<Array>& arrays) {
  for (const Array& each : arrays) each.use_on(stream);
}
/// use_on() of arrays, of lists of them and of those that may be absent.
template <typename... Arrays>
void use_all(const Stream& stream, const Arrays&... arrays) {
  (use_arrays(stream, arrays), ...);
}

/// Whether rows of the matrices are whole packs of 16 bytes.
bool has_packed_rows(const std::vector<Array>& weights);

/// The states between launches of one step; nothing where all steps are one launch.
std::optional<Array> carried_states(const RecurrenceExtent& extent, const RecurrencePlan& plan,
                                    const Array& like, const Stream& stream);

/// Where there is no step: the last state is the first, or zeros.
void hand_over_state(const std::optional<Array>& from, const Array& to, const Stream& stream);

/// Words in which the blocks of groups count their arrivals, where these meet in memory.
std::optional<Array> recurrence_meetings(const RecurrenceExtent& extent, const RecurrencePlan& plan,
                                         const Stream& stream);

/// All steps of the cell that `cell_name` names, with `arrays` as the kernel's Cell.
template <typename Cell>
void launch_recurrence(const Family& family, const char* cell_name, int cell_number,
                       const Cell& arrays, const RecurrenceExtent& extent,
                       const RecurrencePlan& plan, const Array& like, const Stream& stream) {
  const auto key = InstanceKey()
                       .type(extent.type)
                       .add(cell_number, 1)
                       .add(plan.rows_at_once, 3)
                       .add(plan.way, 2);
  const LazyKernel& lazy = family.instance(key, [&] {
    return format("recurrence<{}<{}>, {}, {}>", cell_name, device_type(extent.type),
                  plan.rows_at_once, recurrence_way_name(plan.way));
  });
  const Kernel& kernel = lazy.on(like.device());
  const LaunchConfig config = plan.config(extent, stream);
  const std::int64_t each = plan.is_resident() ? extent.steps : 1;
  const std::optional<Array> meetings = recurrence_meetings(extent, plan, stream);
  for (std::int64_t first = 0; first < extent.steps; first += each) {
    const RecurrenceShape shape{first,
                                each,
                                address_or_null(meetings),
                                static_cast<std::int32_t>(extent.hidden),
                                static_cast<std::int32_t>(extent.batch),
                                plan.units,
                                plan.rows};
    launch(kernel, config, arrays, shape);
  }
  use_all(stream, meetings);
}

}  // namespace kernwright::kernels
