// Taking DLPack capsules apart and making them.
#include "dlpack.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "dlpack_abi.h"
#include "python_support.h"

#include <memory>
#include <utility>

namespace kernwright::python {
namespace {

using namespace abi;

// cuda.core and DLPack write the legacy default stream as 1.
constexpr std::uintptr_t kLegacyStreamNumber = 1;

std::optional<ScalarType> scalar_of(const DLDataType& type) {
  if (type.lanes != 1) return std::nullopt;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto candidate = static_cast<ScalarType>(i);
    if (scalar_size(candidate) * 8 != type.bits) continue;
    const bool same = (type.code == kInt && is_signed_integer(candidate)) ||
                      (type.code == kUInt && is_unsigned_integer(candidate)) ||
                      (type.code == kBool && candidate == ScalarType::boolean) ||
                      (type.code == kComplex && is_complex(candidate)) ||
                      (type.code == kBfloat && candidate == ScalarType::bfloat16) ||
                      (type.code == kFloat8E4M3FN && candidate == ScalarType::float8_e4m3fn) ||
                      (type.code == kFloat8E5M2 && candidate == ScalarType::float8_e5m2) ||
                      (type.code == kFloat && type.bits >= 16 && is_floating(candidate) &&
                       candidate != ScalarType::bfloat16);
    if (same) return candidate;
  }
  return std::nullopt;
}

DLDataType dlpack_type(ScalarType type) {
  const auto bits = static_cast<std::uint8_t>(scalar_size(type) * 8);
  if (type == ScalarType::boolean) return {kBool, bits, 1};
  if (type == ScalarType::bfloat16) return {kBfloat, bits, 1};
  if (type == ScalarType::float8_e4m3fn) return {kFloat8E4M3FN, bits, 1};
  if (type == ScalarType::float8_e5m2) return {kFloat8E5M2, bits, 1};
  if (is_complex(type)) return {kComplex, bits, 1};
  if (is_floating(type)) return {kFloat, bits, 1};
  return {is_signed_integer(type) ? kInt : kUInt, bits, 1};
}

/// A capsule's content: the tensor, whether it may be written, and what frees it.
struct Content {
  const DLTensor* tensor = nullptr;
  bool read_only = false;
  std::shared_ptr<void> owner;
};

template <typename Managed>
Managed* take(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) throw py::error_already_set();
  if (PyCapsule_SetName(capsule, used) != 0) throw py::error_already_set();
  return managed;
}

template <typename Managed>
std::shared_ptr<void> owner_of(Managed* managed) {
  return {managed, [](void* held) {
            auto* tensor = static_cast<Managed*>(held);
            if (tensor->deleter != nullptr && Py_IsInitialized()) tensor->deleter(tensor);
          }};
}

Content open_capsule(py::handle capsule) {
  Content content;
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
    auto* managed =
        take<DLManagedTensorVersioned>(capsule.ptr(), kVersionedName, kUsedVersionedName);
    content.owner = owner_of(managed);
    if (managed->major != 1) {
      throw ArgumentError(format("DLPack version {}.{}: only version 1 is understood",
                                 managed->major, managed->minor));
    }
    content.tensor = &managed->tensor;
    content.read_only = (managed->flags & kReadOnlyFlag) != 0;
    return content;
  }
  auto* managed = take<DLManagedTensor>(capsule.ptr(), kName, kUsedName);
  content.tensor = &managed->tensor;
  content.owner = owner_of(managed);
  return content;
}

/// Calls value.__dlpack__, with max_version where the producer knows it.
py::object ask_for_capsule(py::handle value, const py::object& stream) {
  const py::object method = value.attr("__dlpack__");
  try {
    return method(py::arg("stream") = stream, py::arg("max_version") = py::make_tuple(1, 1));
  } catch (py::error_already_set& failure) {
    if (!failure.matches(PyExc_TypeError)) throw;
  }
  return method(py::arg("stream") = stream);
}

/// What a capsule of ours points to and holds.
template <typename Managed>
struct Export {
  Managed managed{};
  Array array;
  Shape shape, strides;
};

template <typename Managed>
Managed* make_export(const Array& array) {
  auto held = std::make_unique<Export<Managed>>();
  held->array = array;
  held->shape = array.shape();
  held->strides = array.strides();
  const auto item = static_cast<std::int64_t>(scalar_size(array.type()));
  for (std::int64_t& stride : held->strides) stride /= item;
  const DLPackPlace place = place_of(array.device());
  DLTensor& tensor = held->managed.tensor;
  tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(array.address()));
  tensor.device = {place.type, place.index};
  tensor.ndim = array.ndim();
  tensor.dtype = dlpack_type(array.type());
  tensor.shape = held->shape.data();
  tensor.strides = held->strides.data();
  held->managed.context = held.get();
  held->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  return &held.release()->managed;
}

/// Frees what a capsule still owns when nobody consumed it.
template <typename Managed>
void free_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
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
  if (!py::hasattr(value, "__dlpack__") || !py::hasattr(value, "__dlpack_device__")) return false;
  const py::object pair = value.attr("__dlpack_device__")();
  place.type = py::int_(pair[py::int_(0)]).cast<std::int32_t>();
  place.index = py::int_(pair[py::int_(1)]).cast<std::int32_t>();
  return true;
}

DLPackPlace place_of(const Device& device) {
  const DLPackDevice type = device.is_simulated() ? DLPackDevice::extension : DLPackDevice::cuda;
  return {static_cast<std::int32_t>(type), device.ordinal()};
}

bool is_on(const DLPackPlace& place, const Device& device) {
  const bool kind = device.is_simulated()
                        ? place.type == static_cast<std::int32_t>(DLPackDevice::extension)
                        : place.is_cuda();
  return kind && place.index == device.ordinal();
}

std::string place_text(const DLPackPlace& place) {
  if (place.is_host()) return "host memory";
  if (place.is_cuda()) return format("cuda:{}", place.index);
  if (place.type == static_cast<std::int32_t>(DLPackDevice::extension)) {
    return format("sim:{}", place.index);
  }
  return format("device type {} of DLPack", place.type);
}

Array adopt_dlpack(py::handle value, Device& device, const Stream& stream) {
  py::object number = py::none();
  if (!device.is_simulated()) {
    const auto handle = stream ? reinterpret_cast<std::uintptr_t>(stream.handle()) : 0;
    number = py::int_(handle == 0 ? kLegacyStreamNumber : handle);
  }
  Content content = open_capsule(ask_for_capsule(value, number));
  const DLTensor& tensor = *content.tensor;
  const auto type = scalar_of(tensor.dtype);
  if (!type) {
    throw ArgumentError(format("{} holds elements of DLPack type {} with {} bits and {} lanes, "
                               "which arrays do not have",
                               type_name(value), tensor.dtype.code, tensor.dtype.bits,
                               tensor.dtype.lanes));
  }
  const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  Shape strides = contiguous_strides(shape, scalar_size(*type));
  if (tensor.strides != nullptr) {
    for (std::size_t i = 0; i < strides.size(); ++i) {
      strides[i] = tensor.strides[i] * static_cast<std::int64_t>(scalar_size(*type));
    }
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  return Array::adopt(device, address, shape, strides, *type, std::move(content.owner),
                      content.read_only);
}

py::object dlpack_capsule(const Array& array, bool versioned) {
  if (!versioned) {
    return make_capsule(make_export<DLManagedTensor>(array), kName, [](PyObject* capsule) {
      free_unused<DLManagedTensor>(capsule, kName);
    });
  }
  auto* managed = make_export<DLManagedTensorVersioned>(array);
  managed->major = 1;
  managed->minor = 1;
  managed->flags = array.read_only() ? kReadOnlyFlag : 0;
  return make_capsule(managed, kVersionedName, [](PyObject* capsule) {
    free_unused<DLManagedTensorVersioned>(capsule, kVersionedName);
  });
}

}  // namespace kernwright::python
