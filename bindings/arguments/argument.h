// Kernel arguments: each parameter has a converter to check a Python value and write its bytes.
#pragma once

#include "array/array.h"
#include "core/kernel.h"
#include "core/launch/parameter_rules.h"
#include "core/tracked_object.h"

#include <pybind11/pybind11.h>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

class LaunchFrame;

/// How to turn a Python value into the bytes of one parameter.
struct ArgumentPlan {
  /// Writes the bytes of `value` to `slot`, or throws ArgumentError or ArgumentRangeError.
  using Converter = void (*)(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                             LaunchFrame& frame);
  Converter convert = nullptr;
  const Parameter* parameter = nullptr;
  std::size_t index = 0;                ///< counted from 0
  std::size_t offset = 0;               ///< of the slot in the argument block
  Pointee pointee = Pointee::anything;  ///< of a pointer
  /// For a pointer to plain numbers: their type. Nothing for all others; they are checked fully.
  std::optional<ScalarType> element = std::nullopt;
  /// For a struct: the last dtype or class with an equal layout. It lives for ever.
  mutable std::atomic<PyObject*> agreed = nullptr;

  ArgumentPlan() = default;
  ArgumentPlan(const ArgumentPlan& other)
      : convert(other.convert),
        parameter(other.parameter),
        index(other.index),
        offset(other.offset),
        pointee(other.pointee),
        element(other.element) {}
};

/// The plan of `parameter`, its slot at or behind `end` of the block.
ArgumentPlan plan_argument(const Parameter& parameter, std::size_t index, std::size_t end);
/// Bytes of a parameter in the argument block.
std::size_t slot_bytes(const Parameter& parameter) noexcept;

/// A host array copied around a launch: kw.In, kw.Out, kw.InOut.
struct HostArgument {
  py::object values;
  bool copy_in = false;
  bool copy_out = false;
};

/// A raw device address: kw.Pointer(address, dtype).
struct PointerArgument {
  std::uintptr_t address = 0;
  std::optional<ScalarType> type;  ///< nothing: taken by any pointer
};

/// An array with or without gaps: kw.strided(x).
struct StridedArgument {
  py::object array;
};

/// Whether launches check their array arguments (device, dtype, contiguity, alignment); true unless
/// kw.checked(False) said otherwise. Process-wide.
bool checks_arguments() noexcept;
/// Returns the earlier value.
bool set_checks_arguments(bool enabled) noexcept;

/// The state of one launch while its arguments are converted. Lives on the caller's stack.
class LaunchFrame {
 public:
  LaunchFrame(const Kernel& kernel, Device& device, const Stream& stream)
      : kernel_(kernel), device_(device), stream_(stream), is_checked_(checks_arguments()) {}
  LaunchFrame(const LaunchFrame&) = delete;
  LaunchFrame& operator=(const LaunchFrame&) = delete;
  ~LaunchFrame() {
    if (!staged_.empty()) [[unlikely]]
      free_staged();
  }

  bool is_checked() const noexcept { return is_checked_; }
  Device& device() const noexcept { return device_; }
  const Stream& stream() const noexcept { return stream_; }

  /// Tells that the launch reads or writes the memory of `array`. The array lives as long as the
  /// arguments.
  void note_use(const Array& array) {
    if (used_count_ < used_.size()) {
      used_[used_count_++] = &array;
    } else {
      more_used_.push_back(&array);
    }
  }
  /// The same of a texture or surface.
  void note_use(const std::shared_ptr<TrackedObject>& object) { objects_.push_back(&*object); }
  /// Refuses `layout`, a dtype or ctypes structure, where it differs from the known layout of the
  /// parameter's struct or vector, or of the one it points to.
  void check_layout(const ArgumentPlan& plan, const py::object& layout) const;
  /// After the launch: that memory is not reused, and no object ends, before the work queued on
  /// `stream` is done. Needs no GIL.
  void use_arrays(const Stream& stream) const {
    for (TrackedObject* object : objects_) object->use_on(stream);
    for (std::size_t i = 0; i < used_count_; ++i) used_[i]->use_on(stream);
    for (const Array* array : more_used_) array->use_on(stream);
  }

  /// Copies `host` to the device (or only makes room there) and returns the address. Throws
  /// ArgumentError where two arguments would be copied back to the same memory.
  CUdeviceptr stage(const ArgumentPlan& plan, const HostArgument& host, const py::object& values,
                    ScalarType type);
  /// Copies results back and waits, when a host argument was staged.
  void finish();

  /// "saxpy(float a, ...): parameter 2 (const float*) <problem>".
  std::string describe(const ArgumentPlan& plan, const std::string& problem) const;
  [[noreturn]] void refuse(const ArgumentPlan& plan, const std::string& problem) const;
  [[noreturn]] void refuse_range(const ArgumentPlan& plan, const std::string& problem) const;

 private:
  void free_staged() noexcept;
  struct Staged;
  void check_results() const;
  void check_input(const Staged& staged) const;
  /// A message for each kw.In that the kernel wrote to; without the check that finds such writes.
  std::vector<std::string> lost_writes() const;
  void refuse_shared(const ArgumentPlan& plan, const py::object& target) const;

  struct Staged {
    const ArgumentPlan* plan = nullptr;
    bool copied_in = false;
    Array array;
    py::object target;  // null when nothing is copied back
    /// Host memory for the copy back, the target itself where possible; of an input its values on
    /// the simulated device, to see whether the kernel wrote there.
    py::object contiguous;
  };
  const Kernel& kernel_;
  Device& device_;
  const Stream& stream_;
  bool is_checked_;
  std::size_t used_count_ = 0;
  std::array<const Array*, 32> used_;  // not initialised: most launches have few
  std::vector<const Array*> more_used_;
  std::vector<TrackedObject*> objects_;
  std::vector<Staged> staged_;
};

/// Converters of pointer parameters (argument_array.cpp) and of values (argument_value.cpp).
void convert_pointer(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame);
/// Pointers to functions, for which there are no arrays.
void convert_function(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                      LaunchFrame& frame);
ArgumentPlan::Converter value_converter(const Parameter& parameter);

}  // namespace kernwright::python
