// Shapes, indexing and host copies of arrays.
#include "bindings/values/array_support.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"
#include "memory/host_pages.h"

#include <string>
#include <vector>

namespace kernwright::python {
namespace {

[[noreturn]] void refuse_index(py::handle key) {
  throw ArgumentError(
      format("an array is indexed by ints, slices, Ellipsis, None, arrays of integers and masks, "
             "got {} {}",
             type_name(key), short_repr(key)));
}

bool is_integer(py::handle key) {
  if (PyLong_CheckExact(key.ptr())) return true;
  return !PyBool_Check(key.ptr()) && PyIndex_Check(key.ptr()) && !py::hasattr(key, "shape");
}

/// True for NumPy's integer scalars: they have a shape of ().
bool is_numpy_integer(py::handle key) {
  const auto type = type_scalar(Py_TYPE(key.ptr()));
  return type && (is_signed_integer(*type) || is_unsigned_integer(*type));
}

std::int64_t position(py::handle key, std::int64_t extent, int axis) {
  const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(key.ptr()));
  if (!whole) throw py::error_already_set();
  int overflow = 0;
  const long long index = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0 || index < -extent || index >= extent) {
    throw py::index_error(format("index {} is out of bounds for axis {} with size {}",
                                 short_repr(whole), axis, extent));
  }
  return index < 0 ? index + extent : index;
}

Array slice_axis(const Array& array, int axis, py::handle key) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(key.ptr(), &start, &stop, &step) != 0) throw py::error_already_set();
  const Py_ssize_t count =
      PySlice_AdjustIndices(array.shape()[static_cast<std::size_t>(axis)], &start, &stop, step);
  return array.slice(axis, count == 0 ? 0 : start, count, step);
}

/// Applies the parts of an index one after the other, from the first axis on.
class Indexer {
 public:
  explicit Indexer(const Array& array) : result_(array) {}

  void apply(py::handle key) {
    if (key.is_none()) {
      result_ = result_.insert_axis(axis_++);
    } else if (PySlice_Check(key.ptr())) {
      result_ = slice_axis(result_, axis_++, key);
    } else if (is_integer(key) || is_numpy_integer(key)) {
      const std::int64_t extent = result_.shape()[static_cast<std::size_t>(axis_)];
      result_ = result_.drop_axis(axis_, position(key, extent, axis_));
    } else {
      refuse_index(key);
    }
  }
  void skip(int axes) { axis_ += axes; }
  const Array& result() const { return result_; }

 private:
  Array result_;
  int axis_ = 0;
};

bool is_basic_part(py::handle key) {
  return key.is_none() || PySlice_Check(key.ptr()) || key.ptr() == Py_Ellipsis || is_integer(key) ||
         is_numpy_integer(key);
}

bool consumes_axis(py::handle key) { return !key.is_none() && key.ptr() != Py_Ellipsis; }

}  // namespace

Array* find_array(PyObject* object) noexcept {
  static auto* type = reinterpret_cast<PyTypeObject*>(py::type::of<Array>().inc_ref().ptr());
  if (Py_TYPE(object) != type && PyType_IsSubtype(Py_TYPE(object), type) == 0) return nullptr;
  return instance_value<Array>(object);
}

py::object new_array_object(Array&& array) {
  static const py::detail::type_info* const type = py::detail::get_type_info(typeid(Array), true);
  static_assert(sizeof(Unlocked<Array>) <=
                py::detail::instance_simple_holder_in_ptrs() * sizeof(void*));
  auto object = py::reinterpret_steal<py::object>(type->type->tp_alloc(type->type, 0));
  if (!object) throw py::error_already_set();
  auto* const made = reinterpret_cast<py::detail::instance*>(object.ptr());
  made->simple_layout = true;  // all else is zero, as pybind11 has it in a new object
  made->owned = true;
  py::detail::value_and_holder place = made->get_value_and_holder();
  auto* const value = new Array(std::move(array));
  place.value_ptr() = value;
  new (std::addressof(place.holder<Unlocked<Array>>())) Unlocked<Array>(value);
  place.set_holder_constructed();
  return object;
}

Shape shape_argument(py::handle value, bool allow_minus_one) {
  Shape shape;
  const auto append = [&](py::handle extent) {
    if (PyBool_Check(extent.ptr()) || !PyIndex_Check(extent.ptr())) {
      throw ArgumentError(
          extent.is(value)
              ? format("a shape is an int or a sequence of ints, got {} {}", type_name(value),
                       short_repr(value))
              : format("a shape is an int or a sequence of ints, got {} with the {} {}",
                       short_repr(value), type_name(extent), short_repr(extent)));
    }
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(extent.ptr()));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow != 0 || (number < 0 && !(allow_minus_one && number == -1))) {
      throw InvalidArgument(
          format("shape {}: a shape cannot have the extent {}; each is at least 0 and below 2^63",
                 short_repr(value), short_repr(index)));
    }
    shape.push_back(number);
  };
  if (PyIndex_Check(value.ptr()) && !py::isinstance<py::array>(value)) {
    append(value);
  } else {
    if (!PySequence_Check(value.ptr()) || PyUnicode_Check(value.ptr())) append(value);
    for (const py::handle extent : value) append(extent);
  }
  return shape;
}

py::tuple shape_tuple(const Shape& values) {
  py::tuple tuple(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) tuple[i] = values[i];
  return tuple;
}

bool is_basic_index(py::handle key) {
  if (!PyTuple_Check(key.ptr())) return is_basic_part(key);
  for (const py::handle part : py::reinterpret_borrow<py::tuple>(key)) {
    if (!is_basic_part(part)) return false;
  }
  return true;
}

Array index_array(const Array& array, py::handle key) {
  Indexer indexer(array);
  if (!PyTuple_Check(key.ptr())) {
    if (key.ptr() == Py_Ellipsis) return array;
    if (consumes_axis(key) && array.ndim() == 0) {
      throw py::index_error("too many indices: the array has no dimension");
    }
    indexer.apply(key);
    return indexer.result();
  }
  const auto parts = py::reinterpret_borrow<py::tuple>(key);
  int used = 0, ellipses = 0;
  for (const py::handle part : parts) {
    used += consumes_axis(part) ? 1 : 0;
    ellipses += part.ptr() == Py_Ellipsis ? 1 : 0;
  }
  if (ellipses > 1) throw py::index_error("an index can have only one Ellipsis");
  if (used > array.ndim()) {
    throw py::index_error(format("too many indices: the array is {}-dimensional, but {} were given",
                                 array.ndim(), used));
  }
  for (const py::handle part : parts) {
    if (part.ptr() == Py_Ellipsis) {
      indexer.skip(array.ndim() - used);
    } else {
      indexer.apply(part);
    }
  }
  return indexer.result();
}

py::array to_numpy(const Array& array) {
  std::vector<py::ssize_t> shape(array.shape().begin(), array.shape().end());
  py::array values(dtype_object(array.type()), shape);
  settle(array.device());
  void* data = values.mutable_data();
  const GilRelease unlocked;
  populate_pages(data, array.nbytes());
  array.to_host(data);
  return values;
}

void assign_numpy(Array& array, const py::array& values) {
  const auto contiguous = py::reinterpret_steal<py::array>(
      py::module_::import("numpy").attr("ascontiguousarray")(values).release());
  if (array.read_only())
    throw InvalidArgument("cannot write to " + array.identify() + ": read-only");
  settle(array.device());
  const void* data = contiguous.data();
  const GilRelease unlocked;
  array.assign_from_host(data);
}

}  // namespace kernwright::python
