// Looking the exchange table up, and borrowing tensors through it.
#include "bindings/array/dlpack_exchange.h"

#include "array/interchange.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/python_support.h"

namespace kernwright::python {
namespace {

constexpr const char* kCapsuleName = "dlpack_exchange_api";

bool is_row_major(const DLTensor& tensor) noexcept {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (std::int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

std::size_t tensor_bytes(const DLTensor& tensor) noexcept {
  std::size_t count = 1;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
    count *= static_cast<std::size_t>(tensor.shape[axis]);
  }
  return count * ((std::size_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8);
}

/// Takes the pending error of Python.
std::string raised_text() {
  if (PyErr_Occurred() == nullptr) return "its library gave no reason";
  return py::error_already_set().what();
}

}  // namespace

const DLPackExchangeAPI* find_exchange(PyTypeObject* type) noexcept {
  PyObject* const capsule =
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const DLPackExchangeAPIHeader* header = nullptr;
  if (PyCapsule_IsValid(capsule, kCapsuleName) != 0) {
    header =
        static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  }
  Py_DECREF(capsule);
  while (header != nullptr && header->version.major != kDLPackMajor) header = header->prev_api;
  const auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
  const bool is_whole = api != nullptr && api->dltensor_from_py_object_no_sync != nullptr &&
                        api->current_work_stream != nullptr;
  return is_whole ? api : nullptr;
}

void read_exchange(const DLPackExchangeAPI& api, py::handle value, ArrayArgument& argument,
                   DLDevice& place) {
  DLTensor tensor{};
  if (api.dltensor_from_py_object_no_sync(value.ptr(), &tensor) != 0) {
    throw ArgumentError(format("a {} that cannot be taken: {}", type_name(value), raised_text()));
  }
  place = tensor.device;
  argument.type = scalar_from_dlpack(tensor.dtype);
  if (!argument.type) {
    argument.type_text = format("DLPack's type code {} with {} bits and {} lanes",
                                tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  }
  argument.address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  argument.nbytes = tensor_bytes(tensor);
  argument.contiguous = is_row_major(tensor);
}

std::uintptr_t exchange_stream(const DLPackExchangeAPI& api, const DLDevice& place) {
  void* stream = nullptr;
  if (api.current_work_stream(place.device_type, place.device_id, &stream) != 0) {
    throw ArgumentError(format("an array whose stream is not known: {}", raised_text()));
  }
  return reinterpret_cast<std::uintptr_t>(stream);
}

}  // namespace kernwright::python
