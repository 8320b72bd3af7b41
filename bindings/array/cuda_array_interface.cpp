// Each field of __cuda_array_interface__ is checked before it is used.
#include "bindings/array/cuda_array_interface.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/foreign.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace kernwright::python {
namespace {

/// Whether the driver of `device` knows `address` as its own memory.
bool owns_address(Device& device, CUdeviceptr address) {
  const GilRelease unlocked;
  const ContextGuard guard(device);
  int ordinal = -1;
  const CUresult result =
      device.driver().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  return result == CUDA_SUCCESS && ordinal == device.ordinal();
}

/// The interface of one value, read field by field.
class Interface {
 public:
  explicit Interface(py::handle value) : value_(value) {
    const py::object found = value.attr("__cuda_array_interface__");
    if (!PyDict_Check(found.ptr())) {
      throw ArgumentError(format("a {} whose __cuda_array_interface__ is a {}, not a dict",
                                 type_name(value), type_name(found)));
    }
    fields_ = py::reinterpret_borrow<py::dict>(found);
  }

  [[noreturn]] void refuse(const char* name, const char* wanted) const {
    const py::object found = field(name);
    throw ArgumentError(
        format("a {} whose __cuda_array_interface__ has {}: \"{}\" must be {}", type_name(value_),
               found.is_none() ? std::string("no value there") : short_repr(found) + " there", name,
               wanted));
  }

  /// The field, None where it is missing.
  py::object field(const char* name) const {
    PyObject* const found = PyDict_GetItemString(fields_.ptr(), name);  // borrowed
    return found == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(found);
  }

  /// An integer between `least` and `most`.
  std::optional<std::int64_t> integer(py::handle number, std::int64_t least) const {
    if (PyBool_Check(number.ptr()) || !PyIndex_Check(number.ptr())) return std::nullopt;
    int overflow = 0;
    const auto exact = py::reinterpret_steal<py::object>(PyNumber_Index(number.ptr()));
    if (!exact) throw py::error_already_set();
    const long long plain = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    if (overflow != 0 || plain < least) return std::nullopt;
    return plain;
  }

  Shape extents(const char* name, const char* wanted, std::int64_t least) const {
    const py::object found = field(name);
    if (!PyTuple_Check(found.ptr()) && !PyList_Check(found.ptr())) refuse(name, wanted);
    Shape shape;
    for (const py::handle item : py::reinterpret_borrow<py::object>(found)) {
      const auto extent = integer(item, least);
      if (!extent) refuse(name, wanted);
      shape.push_back(*extent);
    }
    return shape;
  }

  std::uintptr_t address(bool& read_only) const {
    const char* const wanted = "a tuple of an address and a bool (whether it is read-only)";
    const py::object data = field("data");
    if (!PyTuple_Check(data.ptr()) || py::len(data) != 2) refuse("data", wanted);
    const py::object number = data[py::int_(0)], flag = data[py::int_(1)];
    if (PyBool_Check(number.ptr()) || !PyIndex_Check(number.ptr())) refuse("data", wanted);
    const auto exact = py::reinterpret_steal<py::object>(PyNumber_Index(number.ptr()));
    if (!exact) throw py::error_already_set();
    const std::uintptr_t found = PyLong_AsUnsignedLongLong(exact.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      refuse("data", wanted);
    }
    const int truth = PyObject_IsTrue(flag.ptr());
    if (truth < 0) throw py::error_already_set();
    read_only = truth != 0;
    return found;
  }

  /// The stream to wait for, if any.
  std::optional<std::uintptr_t> stream() const {
    const py::object found = field("stream");
    if (found.is_none()) return std::nullopt;
    const auto handle = integer(found, 1);
    if (!handle) refuse("stream", "a stream's handle, an int of at least 1, or None");
    return static_cast<std::uintptr_t>(*handle);
  }

  void check_version_and_mask() const {
    if (!integer(field("version"), 0)) refuse("version", "an int");
    if (field("mask").is_none()) return;
    throw ArgumentError(
        format("a {} with a mask: masked arrays cannot be taken; fill the masked "
               "elements first, or pass its data without the mask",
               type_name(value_)));
  }

  /// The element type of "typestr"; raw bytes ("|V8") count as uint8 with one more axis.
  ScalarType type(Shape& shape) const {
    const py::object text = field("typestr");
    if (!PyUnicode_Check(text.ptr())) refuse("typestr", "a str such as \"<f4\"");
    py::object dtype;
    try {
      dtype = py::module_::import("numpy").attr("dtype")(text);
    } catch (const py::error_already_set&) {
      refuse("typestr", "a str such as \"<f4\"");
    }
    if (const auto type = dtype_scalar(dtype)) return *type;
    if (dtype.attr("kind").cast<std::string>() != "V") {
      throw ArgumentError(format("a {} of {}, which no array of ours can hold", type_name(value_),
                                 py::str(dtype).cast<std::string>()));
    }
    shape.push_back(dtype.attr("itemsize").cast<std::int64_t>());
    return ScalarType::uint8;
  }

 private:
  py::handle value_;
  py::dict fields_;
};

Shape read_strides(const Interface& interface, const Shape& shape, std::size_t axes,
                   ScalarType type) {
  Shape strides = contiguous_strides(shape, scalar_size(type));
  if (interface.field("strides").is_none()) return strides;
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  const char* const wanted = "a tuple of ints, one for each extent of \"shape\", or None";
  const Shape given = interface.extents("strides", wanted, kLeast);
  if (given.size() != axes) interface.refuse("strides", wanted);
  std::copy(given.begin(), given.end(), strides.begin());
  return strides;
}

}  // namespace

Array adopt_interface(py::handle value, Device& device, const Stream& stream) {
  const Interface interface(value);
  interface.check_version_and_mask();
  bool read_only = false;
  const std::uintptr_t address = interface.address(read_only);
  Shape shape = interface.extents("shape", "a tuple of ints that are at least 0", 0);
  const std::size_t axes = shape.size();
  const ScalarType type = interface.type(shape);
  const Shape strides = read_strides(interface, shape, axes, type);
  const std::optional<std::uintptr_t> producer = interface.stream();
  if (address != 0 && !owns_address(device, address)) {
    refuse_place(value, "another device", device);
  }
  Array array = Array::adopt(device, address, shape, strides, type,
                             keep_alive(py::reinterpret_borrow<py::object>(value)), read_only);
  if (producer) order_after(device, *producer, stream);
  return array;
}

}  // namespace kernwright::python
