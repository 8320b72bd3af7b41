// Array for Python: creation, views, copies, and the protocols of array exchange.
#include "array/array.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/dlpack.h"
#include "bindings/array/foreign.h"
#include "bindings/array/tensor_call.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "bindings/values/scalar_value.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/elementwise/promotion.h"
#include "memory/allocation_site.h"
#include "memory/transfer.h"

#include <array>
#include <numeric>

namespace kernwright::python {
namespace {

/// A function of kernwright._array.methods, for things easier to say in Python.
py::object helper(const char* name) { return module_member("kernwright._array.methods", name); }

/// One of kernwright._array.selection: indexing by arrays.
py::object index_helper(const char* name) {
  return module_member("kernwright._array.selection", name);
}

/// A method that is a function of a module of this package: the array is its first argument.
auto said_by(const char* module, const char* name) {
  return
      [module, name](const py::object& self, const py::args& arguments, const py::kwargs& options) {
        return module_member(module, name)(self, *arguments, **options);
      };
}

Array make_empty(const py::object& shape, const py::object& dtype, const py::object& device) {
  if (PyLong_Check(dtype.ptr())) {
    throw ArgumentError(
        format("{} is no element type; the extents of a shape are one tuple, as in "
               "zeros((3, 4))",
               short_repr(dtype)));
  }
  Device& chosen = device_argument(device);
  const ScalarType type =
      dtype.is_none() ? kernels::default_type(kernels::Weak::real) : scalar_argument(dtype);
  const Stream stream = current_stream(chosen);
  Shape extents = shape_argument(shape);
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return Array::empty(chosen, std::move(extents), type, stream);
}

Array from_numpy(const py::array& values, const py::object& device) {
  Device& chosen = device_argument(device);
  const auto type = dtype_scalar(values.dtype());
  if (!type) {
    throw ArgumentError(format("an array of dtype {} cannot be copied to a device",
                               py::str(values.dtype()).cast<std::string>()));
  }
  const py::array contiguous = py::module_::import("numpy").attr("ascontiguousarray")(values);
  Shape shape(values.shape(), values.shape() + values.ndim());
  const void* data = contiguous.data();
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return Array::from_host(chosen, data, std::move(shape), *type);
}

/// Sets every element to `value`. The array must be contiguous.
void fill_array(const Array& array, const py::object& value) {
  alignas(16) std::array<std::byte, 16> bytes{};
  Number number = read_number(value.ptr());
  if (array.type() == ScalarType::boolean && number.kind != Number::Kind::none) {
    number = Number::make(std::uint64_t{number.is_true() ? 1U : 0U});  // as in NumPy, 2 is true
  }
  const Fit fit = encode(number, array.type(), bytes.data());
  if (fit == Fit::wrong_kind) {
    throw ArgumentError(format("{} cannot be an element of an array of {}", short_repr(value),
                               scalar_name(array.type())));
  }
  if (fit == Fit::out_of_range) {
    throw ArgumentRangeError(format("{} is outside the range of {}: {}", short_repr(value),
                                    scalar_name(array.type()), range_text(array.type())));
  }
  const std::size_t item = scalar_size(array.type());
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (item == 16 && words[0] != words[1]) {
    helper("fill_parts")(py::cast(array), value);
    return;
  }
  const Stream stream = current_stream(array.device());
  const auto count = static_cast<std::size_t>(array.size());
  const GilRelease unlocked;
  fill(array.device(), array.address(), words[0], item == 16 ? 8 : item,
       item == 16 ? 2 * count : count, stream);
}

Array copy_array(const Array& array) {
  const Stream stream = current_stream(array.device());
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return kernels::copy(array, stream);
}

Array cast_array(const py::object& self, const py::object& dtype, bool copy) {
  const auto& array = self.cast<const Array&>();
  const ScalarType type = scalar_argument(dtype);
  if (type == array.type()) return copy ? copy_array(array) : array;
  const Stream stream = current_stream(array.device());
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return kernels::cast(array, type, stream);
}

Array view_array(const Array& array, const py::object& dtype) {
  if (dtype.is_none()) return array;
  if (PyTuple_Check(dtype.ptr()) || PyList_Check(dtype.ptr()) || PyLong_Check(dtype.ptr())) {
    throw ArgumentError(
        format("view(dtype) takes an element type, got {}; for other extents call "
               "reshape()",
               short_repr(dtype)));
  }
  return array.view(scalar_argument(dtype));
}

Array reshape_array(const Array& array, const py::args& arguments) {
  const py::object wanted =
      arguments.size() == 1 ? py::object(arguments[0]) : py::object(arguments);
  Shape shape = resolve_reshape(array.shape(), shape_argument(wanted, true));
  const bool view =
      reshape_strides(array.shape(), array.strides(), shape, scalar_size(array.type())).has_value();
  return view ? array.reshape(std::move(shape)) : copy_array(array).reshape(std::move(shape));
}

Array transpose_array(const Array& array, const py::args& arguments) {
  std::vector<int> axes(static_cast<std::size_t>(array.ndim()));
  if (arguments.empty() || (arguments.size() == 1 && arguments[0].is_none())) {
    std::iota(axes.rbegin(), axes.rend(), 0);
  } else {
    const bool is_sequence = arguments.size() == 1 && !PyLong_Check(py::object(arguments[0]).ptr());
    const py::object wanted = is_sequence ? py::object(arguments[0]) : py::object(arguments);
    axes.clear();
    for (const py::handle axis : py::iter(wanted)) {
      if (PyBool_Check(axis.ptr()) || !PyLong_Check(axis.ptr())) {
        throw ArgumentError(format("the axes of transpose() are ints, got {}", type_name(axis)));
      }
      axes.push_back(axis.cast<int>());
    }
  }
  return array.transpose(axes);
}

py::object to_device(const py::object& self, const py::object& device) {
  const auto& array = self.cast<const Array&>();
  Device& target = device_argument(device);
  Device& home = array.device();
  if (&target == &home) return self;
  const Stream after = current_stream(home);
  const Stream stream = current_stream(target);
  Array made;
  const AllocationSiteScope scope(user_site());
  {
    const GilRelease unlocked;
    const Array source = array.is_contiguous() ? array : kernels::copy(array, after);
    made = Array::empty(target, array.shape(), array.type(), stream);
    copy_across(target, made.address(), home, source.address(), source.nbytes(), stream, after);
    // The stream that read it waits for the copy, and so do all that wait for this stream.
    source.use_on(after ? after : Stream::legacy(home));
  }
  return py::cast(std::move(made));
}

/// Copies `source` into `target`, both of the same shape, type and device; any strides.
void assign_array(Array& target, const Array& source) {
  if (target.read_only())
    throw InvalidArgument("cannot write to " + target.identify() + ": read-only");
  const Stream stream = current_stream(target.device());
  const GilRelease unlocked;
  kernels::copy_elements(target, source, stream);
}

py::object dlpack(const py::object& self, const py::object& stream, const py::object& max_version,
                  const py::object& dl_device, const py::object& copy) {
  const auto& array = self.cast<const Array&>();
  const DLPackPlace here = device_place(array.device());
  const bool wants_host = !dl_device.is_none() && dl_device[py::int_(0)].cast<int>() == 1;
  if (wants_host) return helper("dlpack_on_host")(self, max_version, copy);
  if (!dl_device.is_none() && !(dl_device[py::int_(0)].cast<int>() == here.type &&
                                dl_device[py::int_(1)].cast<int>() == here.index)) {
    throw py::buffer_error("the array is on " + array.device().identify() +
                           "; copy it with .to(device) first");
  }
  const bool wants_copy = !copy.is_none() && copy.cast<bool>();
  // A consumer on another stream waits for ours; -1 asks for no order at all.
  if (!stream.is_none() && !array.device().is_simulated() && stream.cast<std::int64_t>() != -1) {
    const Stream ours = current_stream(array.device());
    const auto consumer = stream.cast<std::uintptr_t>();
    order_after(array.device(), ours ? reinterpret_cast<std::uintptr_t>(ours.handle()) : 0,
                consumer <= 1
                    ? Stream::legacy(array.device())
                    : Stream::borrow(array.device(), reinterpret_cast<CUstream>(consumer)));
  }
  const bool versioned = !max_version.is_none() && max_version[py::int_(0)].cast<int>() >= 1;
  if (array.read_only() && !versioned && !wants_copy) {
    throw py::buffer_error("a read-only array needs a consumer that knows DLPack 1.0");
  }
  return dlpack_capsule(wants_copy ? copy_array(array) : array, versioned, wants_copy);
}

py::dict cuda_interface(const Array& array) {
  if (array.device().is_simulated()) {
    throw py::attribute_error(
        "an array of the simulated device has no __cuda_array_interface__: "
        "its memory is no CUDA memory; copy it with .numpy()");
  }
  const py::dtype dtype = dtype_object(array.type());
  if (dtype.kind() == 'V') {
    throw py::attribute_error(format("__cuda_array_interface__ has no name for {}; use DLPack",
                                     scalar_name(array.type())));
  }
  const Stream stream = current_stream(array.device());
  py::dict interface;
  interface["shape"] = shape_tuple(array.shape());
  interface["typestr"] = dtype.attr("str");
  interface["descr"] = dtype.attr("descr");
  interface["data"] = py::make_tuple(array.address(), array.read_only());
  interface["strides"] =
      array.is_contiguous() ? py::object(py::none()) : py::object(shape_tuple(array.strides()));
  interface["stream"] = stream ? reinterpret_cast<std::uintptr_t>(stream.handle()) : 1;
  interface["version"] = 3;
  return interface;
}

py::object adopt(const py::object& value, const py::object& device) {
  Device& chosen = device_argument(device);
  std::optional<Array> array = adopt_foreign(value, chosen, current_stream(chosen));
  return array ? py::cast(std::move(*array)) : py::object(py::none());
}

using ArrayClass = py::class_<Array, Unlocked<Array>>;

void define_properties(ArrayClass& type) {
  type.def_property_readonly("shape", [](const Array& a) { return shape_tuple(a.shape()); })
      .def_property_readonly("strides", [](const Array& a) { return shape_tuple(a.strides()); })
      .def_property_readonly("dtype", [](const Array& a) { return dtype_object(a.type()); })
      .def_property_readonly("ndim", &Array::ndim)
      .def_property_readonly("size", &Array::size)
      .def_property_readonly("nbytes", &Array::nbytes)
      .def_property_readonly("itemsize", [](const Array& a) { return scalar_size(a.type()); })
      .def_property_readonly("device", [](const Array& a) { return DeviceObject{&a.device()}; })
      .def_property_readonly("ptr",
                             [](const Array& a) {
                               a.device();
                               return a.address();
                             })
      .def_property_readonly("is_contiguous", &Array::is_contiguous)
      .def_property_readonly("read_only", &Array::read_only)
      .def_property_readonly("mT",
                             [](const py::object& self) {
                               return module_member("kernwright._array.manipulation",
                                                    "matrix_transpose")(self);
                             })
      .def_property_readonly("T", [](const Array& a) { return transpose_array(a, py::args()); })
      .def_property_readonly("__cuda_array_interface__", &cuda_interface);
  for (const auto& [name, set] : {std::pair{"real", "set_real"}, std::pair{"imag", "set_imag"}}) {
    type.def_property(
        name, [name](const py::object& self) { return helper(name)(self); },
        [set](const py::object& self, const py::object& value) { helper(set)(self, value); });
  }
}

void define_methods(ArrayClass& type) {
  type.def("numpy", &to_numpy)
      .def("copy", &copy_array)
      .def("astype", &cast_array, py::arg("dtype"), py::kw_only(), py::arg("copy") = true)
      .def("view", &view_array, py::arg("dtype") = py::none())
      .def("reshape", &reshape_array)
      .def("transpose", &transpose_array)
      .def("to", &to_device, py::arg("device"))
      .def(
          "to_device",
          [](const py::object& self, const py::object& device, const py::object& stream) {
            if (!stream.is_none()) {
              throw ArgumentError(
                  "to_device() works on the current stream; choose one with `with stream:`");
            }
            return to_device(self, device);
          },
          py::arg("device"), py::pos_only(), py::kw_only(), py::arg("stream") = py::none())
      .def(
          "__array_namespace__",
          [](const Array&, const py::object& api_version) {
            return helper("namespace")(api_version);
          },
          py::kw_only(), py::arg("api_version") = py::none())
      .def(
          "record_stream",
          [](const Array& a, const py::object& stream) {
            Stream user = stream_argument(stream, a.device());
            if (!user) user = current_stream(a.device());
            without_gil([&] { a.use_on(user ? user : Stream::legacy(a.device())); });
          },
          py::arg("stream") = py::none())
      .def("item", said_by("kernwright._array.methods", "item_at"))
      .def("__len__",
           [](const Array& a) {
             if (a.ndim() == 0) throw ArgumentError("len() of an array without dimensions");
             return a.shape()[0];
           })
      .def("__iter__",
           [](const py::object& self) {
             if (self.cast<const Array&>().ndim() == 0) {
               throw ArgumentError(
                   "iteration over an array without dimensions: it has one element, "
                   "x.item()");
             }
             return py::reinterpret_steal<py::object>(PySeqIter_New(self.ptr()));
           })
      .def("__contains__",
           [](const py::object& self, const py::object& value) {
             return helper("contains")(self, value).cast<bool>();
           })
      .def("__getitem__",
           [](const py::object& self, const py::object& key) -> py::object {
             if (!is_basic_index(key)) return index_helper("select")(self, key);
             return py::cast(index_array(self.cast<const Array&>(), key));
           })
      .def("__setitem__",
           [](const py::object& self, const py::object& key, const py::object& value) {
             if (!is_basic_index(key)) {
               index_helper("assign_selected")(self, key, value);
             } else {
               helper("assign")(py::cast(index_array(self.cast<const Array&>(), key)), value);
             }
           })
      .def("_fill", &fill_array)
      .def("_assign", &assign_array)
      .def("_assign_numpy", &assign_numpy)
      .def("_broadcast", [](const Array& a, const py::object& shape) {
        return a.broadcast(shape_argument(shape));
      });
}

/// Methods with twins among the functions of the array library.
void define_library_methods(ArrayClass& type) {
  for (const char* const name :
       {"ravel", "flatten", "fill", "tolist", "clip", "round", "conj", "conjugate"}) {
    type.def(name, said_by("kernwright._array.methods", name));
  }
  for (const char* const name : {"squeeze", "swapaxes", "repeat"}) {
    type.def(name, said_by("kernwright._array.manipulation", name));
  }
  type.def("take", said_by("kernwright._array.indexing", "take"));
  type.def("sort", said_by("kernwright._array.sorting", "sort_in_place"));
  type.def("argsort", said_by("kernwright._array.sorting", "argsort"));
  type.def("searchsorted", said_by("kernwright._array.sorting", "searchsorted"));
  type.def("nonzero", said_by("kernwright._array.counting", "nonzero"));
  type.def("argpartition", said_by("kernwright._array.composed.ordering", "argpartition"));
  type.def("choose", said_by("kernwright._array.composed.ordering", "choose"));
  type.def("diagonal", said_by("kernwright._array.composed.making", "diagonal"));
  type.def("dot", said_by("kernwright._array.composed.products", "dot"));
  type.def("trace", said_by("kernwright._array.composed.making", "sum_of_diagonal"));
}

/// Products of matrices; NotImplemented where the other side is no array.
void define_products(ArrayClass& type) {
  const auto product = [](const py::object& left, const py::object& right) -> py::object {
    if (find_array(left.ptr()) == nullptr || find_array(right.ptr()) == nullptr) {
      return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    }
    return module_member("kernwright._array.linear", "matmul")(left, right);
  };
  type.def("__matmul__", product);
  type.def("__rmatmul__", [product](const py::object& self, const py::object& other) {
    return product(other, self);
  });
  type.def("__imatmul__", [product](const py::object& self, const py::object& other) -> py::object {
    const py::object made = product(self, other);
    if (made.is(py::handle(Py_NotImplemented))) return made;
    helper("assign")(self, made);
    return self;
  });
}

void define_protocols(ArrayClass& type) {
  type.def("__dlpack__", &dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__",
           [](const Array& a) {
             const DLPackPlace place = device_place(a.device());
             return py::make_tuple(place.type, place.index);
           })
      .def("__array__",
           [](const Array&, const py::args&, const py::kwargs&) -> py::object {
             throw ArgumentError(
                 "an array of a device is not copied to the host by itself: call "
                 ".numpy()");
           })
      .def("__bool__", [](const py::object& a) { return helper("truth")(a); })
      .def("__int__", [](const py::object& a) { return py::int_(helper("item")(a, "int")); })
      .def("__float__", [](const py::object& a) { return py::float_(helper("item")(a, "float")); })
      .def("__complex__", [](const py::object& a) { return helper("as_complex")(a); })
      .def("__index__", [](const py::object& a) { return helper("as_index")(a); })
      .def("__round__", said_by("kernwright._array.methods", "round"))
      .def("__trunc__", [](const py::object& a) { return helper("whole")(a, "trunc"); })
      .def("__floor__", [](const py::object& a) { return helper("whole")(a, "floor"); })
      .def("__ceil__", [](const py::object& a) { return helper("whole")(a, "ceil"); })
      .def("__format__",
           [](const py::object& a, const py::object& spec) { return helper("formatted")(a, spec); })
      .def("__repr__", [](const py::object& a) { return helper("represent")(a); })
      .def("__reduce__", [](const Array& a) {
        return py::make_tuple(helper("rebuild"), py::make_tuple(to_numpy(a)));
      });
}

}  // namespace

void bind_array(py::module_& m) {
  ArrayClass type(m, "Array");
  find_array(Py_None);  // finds the type now: launches ask without the GIL
  // Now, too: its first use gives up the GIL, and a daemon thread could not come back at the end.
  py::detail::npy_api::get();
  define_properties(type);
  define_methods(type);
  define_library_methods(type);
  define_products(type);
  define_protocols(type);
  bind_evictable(m);
  bind_tensor_call(m);
  m.def("empty", &make_empty, py::arg("shape"), py::arg("dtype") = py::none(), py::kw_only(),
        py::arg("device") = py::none());
  m.def("_from_numpy", &from_numpy, py::arg("values"), py::arg("device") = py::none());
  m.def("_adopt", &adopt, py::arg("value"), py::arg("device") = py::none());
  m.def("_is_basic_index", &is_basic_index);
  m.def("_dtype", [](const py::object& dtype) { return dtype_object(scalar_argument(dtype)); });
}

}  // namespace kernwright::python
