// The state of Python's `with device:` and `with stream:`, and conversions of device and stream
// arguments.
#pragma once

#include "core/device.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"

#include <pybind11/pybind11.h>
#include <chrono>
#include <optional>

namespace kernwright::python {

namespace py = pybind11;

/// Python's Device. Devices live for good, so a pointer is enough. It stands for the device as
/// such; a reset does not change it.
struct DeviceObject {
  Device* device;
  Device& newest() const noexcept { return device->newest(); }
};

/// The device of this thread.
Device& current_device();

/// None: the current device; else a Device, an index, or a name as Runtime::device() takes it.
Device& device_argument(py::handle value);

/// The innermost stream of a `with stream:` in this thread when it is of `device`, else empty
/// (the legacy default stream).
Stream current_stream(Device& device);

void enter_device(Device& device);        ///< `with device:` begins in this thread
void enter_stream(const Stream& stream);  ///< `with stream:` begins: its device is current too
void leave_scope();                       ///< the innermost of both ends
/// The innermost `with` of that device or stream ends. Throws InvalidArgument where none is open in
/// this thread.
void leave_device(const Device& device);
void leave_stream(const Stream& stream);

/// None: empty. Else a kw.Stream, a handle as int, an object with __cuda_stream__(), or a stream of
/// torch (cuda_stream) or CuPy (ptr), which is kept alive as long as the Stream. Throws
/// ArgumentError.
Stream stream_argument(py::handle value, Device& device);

/// The raw handle of such a stream object, or nothing when `value` is none.
std::optional<std::uintptr_t> stream_handle(py::handle value);

/// One to three extents: an int or a sequence of ints. Throws LaunchConfigError for one below
/// `least` or above 32 bits, naming `what`; ArgumentError for anything else.
Dim3 dim3_argument(PyObject* value, const char* what, std::int64_t least = 1);

/// Dynamic shared memory in bytes. Throws LaunchConfigError outside 0 ... 2^32-1.
std::uint32_t shared_bytes_argument(PyObject* value);

/// Seconds, or None for no limit. Throws InvalidArgument for a negative number or NaN.
std::optional<std::chrono::nanoseconds> timeout_argument(py::handle seconds);

/// Waits until the current stream's work is done; without a stream, until the device is idle. So a
/// copy to or from the host sees the work of every stream. The GIL is released meanwhile.
void settle(Device& device);

}  // namespace kernwright::python
