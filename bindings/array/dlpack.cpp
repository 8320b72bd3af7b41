// DLPack capsules: taking them apart and making them. Tensors themselves are array/interchange.h's.
#include "bindings/array/dlpack.h"

#include "array/interchange.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/python_support.h"
#include "core/device.h"
#include "core/graph/capture.h"

namespace kernwright::python {
namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";
// DLPack writes the legacy default stream as 1.
constexpr std::uintptr_t kLegacyStreamNumber = 1;
constexpr int kNoOrder = -1;

/// Calls value.__dlpack__, with max_version where the producer knows it.
py::object ask_for_capsule(py::handle value, const py::object& stream) {
  const py::object method = value.attr("__dlpack__");
  try {
    return method(py::arg("stream") = stream,
                  py::arg("max_version") = py::make_tuple(kDLPackMajor, kDLPackMinor));
  } catch (py::error_already_set& failure) {
    if (!failure.matches(PyExc_TypeError)) throw;
  }
  return method(py::arg("stream") = stream);
}

/// The tensor in `capsule` as an array; the array then owns it, and the capsule is marked as used.
template <typename Managed>
Array consume(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) throw py::error_already_set();
  Array array = from_dlpack(managed);
  if (PyCapsule_SetName(capsule, used) != 0) throw py::error_already_set();
  return array;
}

[[noreturn]] void refuse_capsule(py::handle value, const py::object& capsule) {
  const bool is_used = PyCapsule_IsValid(capsule.ptr(), kUsedName) != 0 ||
                       PyCapsule_IsValid(capsule.ptr(), kUsedVersionedName) != 0;
  throw ArgumentError(format("a {} whose __dlpack__() is {}", type_name(value),
                             is_used ? std::string("a capsule that was used already: each call "
                                                   "must make a new one")
                                     : short_repr(capsule) + ", not a capsule of DLPack"));
}

/// `array`, perhaps at another place than __dlpack_device__() said.
Array checked(py::handle value, const Device& device, Array array) {
  if (&array.device() == &device) return array;
  throw ArgumentError(format("a {} that says it is on {}, but gives memory on {}", type_name(value),
                             device.label(), array.device().label()));
}

/// Frees the contents of an unconsumed capsule.
template <typename Managed>
void free_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  without_gil([&] { managed->deleter(managed); });
}

template <typename Managed>
py::object make_capsule(Managed* managed, const char* name, PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(managed, name, destructor);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

}  // namespace

bool dlpack_place(py::handle value, DLPackPlace& place) {
  if (!has_attribute(value, "__dlpack__") || !has_attribute(value, "__dlpack_device__")) {
    return false;
  }
  const py::object pair = value.attr("__dlpack_device__")();
  if (!PyTuple_Check(pair.ptr()) || py::len(pair) != 2 ||
      !PyIndex_Check(py::object(pair[py::int_(0)]).ptr()) ||
      !PyIndex_Check(py::object(pair[py::int_(1)]).ptr())) {
    throw ArgumentError(format("a {} whose __dlpack_device__() is {}, not a tuple of two ints",
                               type_name(value), short_repr(pair)));
  }
  // The type is often an IntEnum.
  place.type = py::int_(pair[py::int_(0)]).cast<std::int32_t>();
  place.index = py::int_(pair[py::int_(1)]).cast<std::int32_t>();
  return true;
}

bool DLPackPlace::is_cuda() const noexcept { return type == kDLCUDA || type == kDLCUDAManaged; }
bool DLPackPlace::is_host() const noexcept { return type == kDLCPU || type == kDLCUDAHost; }

DLPackPlace device_place(const Device& device) {
  const DLDevice place = dlpack_device(device);
  return {place.device_type, place.device_id};
}

bool is_on(const DLPackPlace& place, const Device& device) {
  const bool kind = device.is_simulated() ? place.type == kDLExtDev : place.is_cuda();
  return kind && place.index == device.ordinal();
}

std::string place_text(const DLPackPlace& place) {
  if (place.is_host()) return "host memory";
  if (place.is_cuda()) return format("cuda:{}", place.index);
  if (place.type == kDLExtDev) return format("sim:{}", place.index);
  return format("device type {} of DLPack", place.type);
}

Array adopt_dlpack(py::handle value, Device& device, const Stream& stream) {
  py::object number = py::none();
  if (!device.is_simulated()) {
    const auto handle = stream ? reinterpret_cast<std::uintptr_t>(stream.handle()) : 0;
    number = py::int_(handle == 0 ? kLegacyStreamNumber : handle);
    // A graph cannot wait for work outside it: its launches are to be ordered, not its capture.
    if (any_capture() && find_capture(stream) != nullptr) number = py::int_(kNoOrder);
  }
  const py::object capsule = ask_for_capsule(value, number);
  try {
    if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
      return checked(
          value, device,
          consume<DLManagedTensorVersioned>(capsule.ptr(), kVersionedName, kUsedVersionedName));
    }
    if (!PyCapsule_IsValid(capsule.ptr(), kName)) refuse_capsule(value, capsule);
    return checked(value, device, consume<DLManagedTensor>(capsule.ptr(), kName, kUsedName));
  } catch (const InvalidArgument& error) {
    throw ArgumentError(format("a {} that cannot be taken: {}", type_name(value), error.what()));
  }
}

py::object dlpack_capsule(const Array& array, bool versioned, bool is_copy) {
  // The place of an array of the simulated device tells so; other libraries refuse it.
  constexpr DLPackReceiver kReceiver = DLPackReceiver::ourselves;
  if (!versioned) {
    return make_capsule(to_dlpack(array, kReceiver), kName,
                        [](PyObject* capsule) { free_unused<DLManagedTensor>(capsule, kName); });
  }
  return make_capsule(
      to_dlpack_versioned(array, kReceiver, is_copy), kVersionedName,
      [](PyObject* capsule) { free_unused<DLManagedTensorVersioned>(capsule, kVersionedName); });
}

}  // namespace kernwright::python
