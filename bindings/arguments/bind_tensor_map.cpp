// TensorMap for Python: from arrays and words to the driver's descriptor.
#include "array/tensor_layout.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/arguments/argument.h"
#include "bindings/array/foreign.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::python {
namespace {

constexpr std::array kInterleaves = {"none", "16B", "32B"};
constexpr std::array kSwizzles = {"none", "32B", "64B", "128B"};
constexpr std::array kPromotions = {"none", "64B", "128B", "256B"};
constexpr std::array kFills = {"none", "nan_request_zero_fma"};
constexpr std::array kDataTypes = {"uint8",       "uint16",   "uint32",      "int32",   "uint64",
                                   "int64",       "float16",  "float32",     "float64", "bfloat16",
                                   "float32_ftz", "tfloat32", "tfloat32_ftz"};

/// The place of a word among `words`, in the order of the driver's enumerators.
template <typename Enumerator, std::size_t count>
Enumerator choice(py::handle value, const char* what, const std::array<const char*, count>& words) {
  const std::string text = PyUnicode_Check(value.ptr()) ? value.cast<std::string>() : "";
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (text == words[i]) return static_cast<Enumerator>(i);
    known += (i == 0 ? "\"" : ", \"") + std::string(words[i]) + "\"";
  }
  throw InvalidArgument(
      format("kw.TensorMap: there is no {} {}: it is one of {}", what, short_repr(value), known));
}

/// An int or a sequence of ints, each within the range of T.
template <typename T>
std::vector<T> numbers(py::handle value, const char* what) {
  std::vector<T> result;
  const auto append = [&](py::handle item) {
    const bool is_integer = PyIndex_Check(item.ptr()) && !PyBool_Check(item.ptr());
    const std::int64_t number = is_integer ? PyNumber_AsSsize_t(item.ptr(), nullptr) : 0;
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (!is_integer)
      throw ArgumentError(format("kw.TensorMap: {} wants ints, got {}", what, type_name(item)));
    if (number < std::int64_t{std::numeric_limits<T>::min()} ||
        number > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
      throw InvalidArgument(format("kw.TensorMap: {} cannot have {}", what, short_repr(item)));
    result.push_back(static_cast<T>(number));
  };
  if (PyIndex_Check(value.ptr())) {
    append(value);
  } else if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
    for (const py::handle item : value) append(item);
  } else {
    throw ArgumentError(
        format("kw.TensorMap: {} wants an int or ints, got {}", what, type_name(value)));
  }
  return result;
}

template <typename T>
T number(py::handle value, const char* what) {
  const std::vector<T> values = numbers<T>(value, what);
  if (values.size() == 1 && PyIndex_Check(value.ptr())) return values[0];
  throw ArgumentError(format("kw.TensorMap: {} wants an int, got {}", what, type_name(value)));
}

/// The common arguments of every map.
struct Words {
  py::object element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, shape,
      strides;

  TensorMapOptions options() const {
    TensorMapOptions options;
    if (!element_strides.is_none())
      options.element_strides = numbers<std::uint32_t>(element_strides, "element_strides");
    options.interleave = choice<CUtensorMapInterleave>(interleave, "interleave", kInterleaves);
    options.swizzle = choice<CUtensorMapSwizzle>(swizzle, "swizzle", kSwizzles);
    options.l2_promotion =
        choice<CUtensorMapL2promotion>(l2_promotion, "l2_promotion", kPromotions);
    options.oob_fill = choice<CUtensorMapFloatOOBfill>(oob_fill, "oob_fill", kFills);
    return options;
  }

  /// The data type asked for, else that of `type`; the sizes of their elements must be equal.
  CUtensorMapDataType type_for(std::optional<ScalarType> type) const {
    if (data_type.is_none()) {
      if (type) return tensor_map_data_type(*type);
      throw ArgumentError(
          "kw.TensorMap of a kw.Pointer wants its dtype, kw.Pointer(address, dtype), or a "
          "data_type");
    }
    const bool is_word =
        PyUnicode_Check(data_type.ptr()) &&
        std::find(kDataTypes.begin(), kDataTypes.end(),
                  std::string_view(data_type.cast<std::string>())) != kDataTypes.end();
    const auto asked = is_word ? choice<CUtensorMapDataType>(data_type, "data_type", kDataTypes)
                               : tensor_map_data_type(scalar_argument(data_type));
    if (type && tensor_element_bytes(asked) != scalar_size(*type))
      throw InvalidArgument(
          format("kw.TensorMap: elements of data_type {} have {} bytes, those of "
                 "the array ({}) {}",
                 short_repr(data_type), tensor_element_bytes(asked), scalar_name(*type),
                 scalar_size(*type)));
    return asked;
  }
};

/// A tensor and where it is.
struct MappedArray {
  TensorLayout tensor;
  Array array;
  Device* device = nullptr;
};

Array array_argument(py::handle value) {
  if (const Array* native = find_array(value.ptr())) return *native;
  Device& device = current_device();
  std::optional<Array> array = adopt_foreign(value, device, current_stream(device));
  if (array) return std::move(*array);
  throw ArgumentError(
      format("kw.TensorMap wants an array of a device or a kw.Pointer, got {}{}", type_name(value),
             py::isinstance<py::array>(value) ? ": copy it to the device with kw.asarray(x)" : ""));
}

MappedArray source_argument(py::handle value, const Words& words) {
  MappedArray source;
  if (py::isinstance<PointerArgument>(value)) {
    const auto& pointer = value.cast<const PointerArgument&>();
    if (words.shape.is_none())
      throw ArgumentError("kw.TensorMap of a kw.Pointer wants the tensor's shape");
    source.device = &current_device();
    source.tensor.address = pointer.address;
    source.tensor.shape = numbers<std::int64_t>(words.shape, "shape");
    if (!words.strides.is_none())
      source.tensor.strides = numbers<std::int64_t>(words.strides, "strides");
    source.tensor.data_type = words.type_for(pointer.type);
    return source;
  }
  if (!words.shape.is_none() || !words.strides.is_none())
    throw ArgumentError(
        "kw.TensorMap takes shape and strides for a kw.Pointer alone: an array has "
        "its own");
  source.array = array_argument(value);
  source.device = &source.array.device();
  const CUtensorMapDataType type = words.type_for(source.array.type());
  source.tensor = tensor_layout(source.array);
  source.tensor.data_type = type;
  return source;
}

Unlocked<TensorMapObject> make_tiled(const py::object& array, const py::object& box_dim,
                                     const py::object& element_strides, const py::object& data_type,
                                     const py::object& interleave, const py::object& swizzle,
                                     const py::object& l2_promotion, const py::object& oob_fill,
                                     const py::object& shape, const py::object& strides) {
  const Words words{element_strides, data_type, interleave, swizzle,
                    l2_promotion,    oob_fill,  shape,      strides};
  MappedArray source = source_argument(array, words);
  const TensorMapOptions options = words.options();
  const auto box = numbers<std::uint32_t>(box_dim, "box_dim");
  const GilRelease unlocked;
  return Unlocked<TensorMapObject>(new TensorMapObject{
      TensorMap::tiled(*source.device, source.tensor, box, options), std::move(source.array)});
}

Unlocked<TensorMapObject> make_im2col(const py::object& array, const py::object& lower_corner,
                                      const py::object& upper_corner, const py::object& channels,
                                      const py::object& pixels, const py::object& element_strides,
                                      const py::object& data_type, const py::object& interleave,
                                      const py::object& swizzle, const py::object& l2_promotion,
                                      const py::object& oob_fill, const py::object& shape,
                                      const py::object& strides) {
  const Words words{element_strides, data_type, interleave, swizzle,
                    l2_promotion,    oob_fill,  shape,      strides};
  MappedArray source = source_argument(array, words);
  const TensorMapOptions options = words.options();
  const PixelBox box{numbers<std::int32_t>(lower_corner, "pixel_box_lower_corner"),
                     numbers<std::int32_t>(upper_corner, "pixel_box_upper_corner"),
                     number<std::uint32_t>(channels, "channels_per_pixel"),
                     number<std::uint32_t>(pixels, "pixels_per_column")};
  const GilRelease unlocked;
  return Unlocked<TensorMapObject>(new TensorMapObject{
      TensorMap::im2col(*source.device, source.tensor, box, options), std::move(source.array)});
}

/// Another array of the same shape, strides and element size, or another address.
void replace_address(TensorMapObject& self, const py::object& value) {
  Device& device = self.map.device();
  Array array;
  CUdeviceptr address = 0;
  if (py::isinstance<PointerArgument>(value)) {
    address = value.cast<const PointerArgument&>().address;
  } else {
    array = array_argument(value);
    address = array.address();
    if (&array.device() != &device)
      throw ArgumentError(format("kw.TensorMap.replace_address: the array is on {}, the map on {}",
                                 array.device().identify(), device.identify()));
    if (self.array.owner() != nullptr &&
        (array.shape() != self.array.shape() || array.strides() != self.array.strides() ||
         scalar_size(array.type()) != scalar_size(self.array.type())))
      throw InvalidArgument(
          format("kw.TensorMap.replace_address: a {} does not lie as the {} of "
                 "the map does: make another map",
                 array.identify(), self.array.identify()));
  }
  const GilRelease unlocked;
  self.map.replace_address(address, array.owner());
  std::swap(self.array, array);
}

/// Values of the driver's dimensions in the order of the array's axes.
py::tuple reversed(const auto& values, std::size_t count) {
  py::tuple result(count);
  for (std::size_t i = 0; i < count; ++i) result[count - 1 - i] = py::int_(values[i]);
  return result;
}

std::size_t map_rank(const TensorMapObject& self) {
  return static_cast<std::size_t>(self.map.parameters().rank);
}

/// One for each axis of the array: behind the dimensions `slice_extent` for that of a slice, if
/// any.
py::tuple axes(const TensorMapObject& self, const auto& values, std::uint32_t slice_extent) {
  py::tuple result = reversed(values, map_rank(self));
  if (tensor_slice_bytes(self.map.parameters()) == 0) return result;
  return py::tuple(result + py::make_tuple(slice_extent));
}

/// Elements of a slice of an interleaved map.
std::uint32_t map_slice(const TensorMapParameters& map) {
  return tensor_slice_bytes(map) / tensor_element_bytes(map.type);
}

py::object map_box(const TensorMapObject& self) {
  const TensorMapParameters& map = self.map.parameters();
  return map.im2col ? py::object(py::none()) : axes(self, map.box, map_slice(map));
}

py::tuple map_strides(const TensorMapObject& self) {
  const TensorMapParameters& map = self.map.parameters();
  const std::uint32_t element = tensor_element_bytes(map.type), slice = tensor_slice_bytes(map);
  auto strides = map.stride;
  strides[0] = slice == 0 ? element : slice;
  return axes(self, strides, element);
}

py::object im2col_value(const TensorMapObject& self, auto value) {
  const TensorMapParameters& map = self.map.parameters();
  return map.im2col ? py::object(value(map)) : py::object(py::none());
}

using TensorMapClass = py::class_<TensorMapObject, Unlocked<TensorMapObject>>;

void define_properties(TensorMapClass& type) {
  type.def_property_readonly("array",
                             [](const TensorMapObject& o) -> py::object {
                               if (o.array.owner() == nullptr) return py::none();
                               return py::cast(o.array);
                             })
      .def_property_readonly("device",
                             [](const TensorMapObject& o) { return DeviceObject{&o.map.device()}; })
      .def_property_readonly("address",
                             [](const TensorMapObject& o) { return o.map.parameters().address; })
      .def_property_readonly("shape",
                             [](const TensorMapObject& o) {
                               return axes(o, o.map.parameters().extent,
                                           map_slice(o.map.parameters()));
                             })
      .def_property_readonly("strides", &map_strides)
      .def_property_readonly("box_dim", &map_box)
      .def_property_readonly(
          "element_strides",
          [](const TensorMapObject& o) { return axes(o, o.map.parameters().step, 1); })
      .def_property_readonly("box_bytes",
                             [](const TensorMapObject& o) { return o.map.box_bytes(); })
      .def_property_readonly("data_type",
                             [](const TensorMapObject& o) {
                               return kDataTypes[static_cast<std::size_t>(o.map.parameters().type)];
                             })
      .def_property_readonly(
          "interleave",
          [](const TensorMapObject& o) {
            return kInterleaves[static_cast<std::size_t>(o.map.parameters().interleave)];
          })
      .def_property_readonly(
          "swizzle",
          [](const TensorMapObject& o) {
            return kSwizzles[static_cast<std::size_t>(o.map.parameters().swizzle)];
          })
      .def_property_readonly(
          "l2_promotion",
          [](const TensorMapObject& o) {
            return kPromotions[static_cast<std::size_t>(o.map.parameters().l2_promotion)];
          })
      .def_property_readonly(
          "oob_fill",
          [](const TensorMapObject& o) { return kFills[o.map.parameters().fills_nan ? 1 : 0]; })
      .def_property_readonly("pixel_box_lower_corner",
                             [](const TensorMapObject& o) {
                               return im2col_value(o, [&](const TensorMapParameters& map) {
                                 return reversed(map.lower, map_rank(o) - 2);
                               });
                             })
      .def_property_readonly("pixel_box_upper_corner",
                             [](const TensorMapObject& o) {
                               return im2col_value(o, [&](const TensorMapParameters& map) {
                                 return reversed(map.upper, map_rank(o) - 2);
                               });
                             })
      .def_property_readonly("channels_per_pixel",
                             [](const TensorMapObject& o) {
                               return im2col_value(o, [](const TensorMapParameters& map) {
                                 return py::int_(map.box[0]);
                               });
                             })
      .def_property_readonly("pixels_per_column", [](const TensorMapObject& o) {
        return im2col_value(o, [](const TensorMapParameters& map) { return py::int_(map.pixels); });
      });
}

}  // namespace

TensorMapObject* find_tensor_map(PyObject* object) noexcept {
  static auto* type =
      reinterpret_cast<PyTypeObject*>(py::type::of<TensorMapObject>().inc_ref().ptr());
  return Py_TYPE(object) == type ? instance_value<TensorMapObject>(object) : nullptr;
}

void bind_tensor_map(py::module_& m) {
  TensorMapClass type(m, "TensorMap", py::is_final());
  find_tensor_map(Py_None);  // finds the type now: launches ask without the GIL
  const py::str none("none");
  type.def(py::init(&make_tiled), py::arg("array"), py::arg("box_dim"), py::kw_only(),
           py::arg("element_strides") = py::none(), py::arg("data_type") = py::none(),
           py::arg("interleave") = none, py::arg("swizzle") = none, py::arg("l2_promotion") = none,
           py::arg("oob_fill") = none, py::arg("shape") = py::none(),
           py::arg("strides") = py::none())
      .def_static("im2col", &make_im2col, py::arg("array"), py::arg("pixel_box_lower_corner"),
                  py::arg("pixel_box_upper_corner"), py::arg("channels_per_pixel"),
                  py::arg("pixels_per_column"), py::kw_only(),
                  py::arg("element_strides") = py::none(), py::arg("data_type") = py::none(),
                  py::arg("interleave") = none, py::arg("swizzle") = none,
                  py::arg("l2_promotion") = none, py::arg("oob_fill") = none,
                  py::arg("shape") = py::none(), py::arg("strides") = py::none())
      .def("replace_address", &replace_address, py::arg("array"))
      .def("__bytes__",
           [](const TensorMapObject& o) {
             const auto bytes = o.map.bytes();
             return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def("__eq__",
           [](const TensorMapObject& o, const py::object& other) -> py::object {
             const TensorMapObject* map = find_tensor_map(other.ptr());
             if (map == nullptr) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             return py::bool_(o.map == map->map);
           })
      .def("__repr__", [](const TensorMapObject& o) {
        return text_object("<TensorMap: " + o.map.identify() + ">");
      });
  type.attr("__hash__") = py::none();  // its address can be replaced
  define_properties(type);
}

}  // namespace kernwright::python
