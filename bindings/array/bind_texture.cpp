// Texture and Surface for Python: from arrays and words to the driver's objects.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/foreign.h"
#include "bindings/array/texture_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"

#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

constexpr std::array kModes = {"wrap", "clamp", "mirror", "border"};
constexpr std::array kFilters = {"point", "linear"};
constexpr std::array kReads = {"element", "normalized"};

/// The place of a word among `words`, in the order of the driver's enumerators.
std::size_t find_word(py::handle value, const char* what, std::span<const char* const> words) {
  const std::string text = PyUnicode_Check(value.ptr()) ? value.cast<std::string>() : "";
  std::string known;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (text == words[i]) return i;
    known += (i == 0 ? "\"" : ", \"") + std::string(words[i]) + "\"";
  }
  throw InvalidArgument(
      format("kw.Texture: there is no {} {}: it is one of {}", what, short_repr(value), known));
}

/// One word for all axes, or one for each of x, y and z.
std::array<CUaddress_mode, 3> modes_argument(py::handle value) {
  std::array<CUaddress_mode, 3> modes;
  const bool several = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
  const auto mode = [](py::handle word) {
    return static_cast<CUaddress_mode>(find_word(word, "address mode", kModes));
  };
  if (!several) {
    modes.fill(mode(value));
    return modes;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value.ptr());
  if (count < 1 || count > 3)
    throw InvalidArgument(format("kw.Texture: address has 1 to 3 words, not {}", count));
  modes.fill(CU_TR_ADDRESS_MODE_CLAMP);
  for (Py_ssize_t i = 0; i < count; ++i)
    modes[static_cast<std::size_t>(i)] = mode(PySequence_Fast_GET_ITEM(value.ptr(), i));
  return modes;
}

/// A channel of the border's colour: a number of a fetch's result type, integers by their bits.
float border_channel(py::handle value, bool integers) {
  if (!integers) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number != -1.0 || PyErr_Occurred() == nullptr) return static_cast<float>(number);
    PyErr_Clear();
    throw ArgumentError(format("kw.Texture: the border is a number, or up to four of them, got {}",
                               short_repr(value)));
  }
  if (PyIndex_Check(value.ptr()) == 0)
    throw ArgumentError(format("kw.Texture: the border of a texture of integers is an int, got {}",
                               type_name(value)));
  const auto exact = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!exact) throw py::error_already_set();
  int beyond = 0;
  const long long number = PyLong_AsLongLongAndOverflow(exact.ptr(), &beyond);
  if (beyond != 0 || number < std::numeric_limits<std::int32_t>::min() ||
      number > std::numeric_limits<std::uint32_t>::max())
    throw ArgumentRangeError(
        format("kw.Texture: a border of {} does not fit into 32 bits", short_repr(value)));
  return std::bit_cast<float>(static_cast<std::uint32_t>(number));
}

std::array<float, 4> border_argument(py::handle value, bool integers) {
  std::array<float, 4> border{};
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) {
    border.fill(border_channel(value, integers));
    return border;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value.ptr());
  if (count < 1 || count > 4)
    throw InvalidArgument(format("kw.Texture: a border has 1 to 4 numbers, not {}", count));
  for (Py_ssize_t i = 0; i < count; ++i)
    border[static_cast<std::size_t>(i)] =
        border_channel(PySequence_Fast_GET_ITEM(value.ptr(), i), integers);
  return border;
}

/// Elements in the memory of an array: (n,) or (rows, n), and an axis for several channels.
TextureMemory texture_memory(const Array& array, unsigned channels) {
  const std::size_t axes = static_cast<std::size_t>(array.ndim()) - (channels != 1 ? 1 : 0);
  if (array.ndim() == 0 || axes < 1 || axes > 2 ||
      (channels != 1 && array.shape().back() != channels))
    throw InvalidArgument(
        format("kw.Texture: {} is no memory of 1 or 2 axes of elements of {} channel{}: with "
               "several channels they are the array's last axis",
               array.identify(), channels, channels == 1 ? "" : "s"));
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()) * channels);
  const bool dense = (channels == 1 || array.strides().back() ==
                                           static_cast<std::int64_t>(scalar_size(array.type()))) &&
                     (array.strides()[axes - 1] == element || array.shape()[axes - 1] == 1);
  if (!dense || (axes == 2 && array.strides()[0] < 0))
    throw InvalidArgument(
        format("kw.Texture: elements of a row of {} do not follow each other: "
               "pass a copy of the array",
               array.identify()));
  TextureMemory memory;
  memory.address = array.address();
  memory.type = array.type();
  memory.channels = channels;
  memory.width = static_cast<std::size_t>(array.shape()[axes - 1]);
  if (axes == 2) {
    memory.height = static_cast<std::size_t>(array.shape()[0]);
    memory.pitch = static_cast<std::size_t>(array.strides()[0]);
    if (memory.height == 0) throw InvalidArgument("kw.Texture: the array has no elements");
  }
  memory.owner = array.owner();
  return memory;
}

TextureOptions texture_options(const py::object& address, const py::object& filter, bool normalized,
                               const py::object& read, const py::object& border, ScalarType type) {
  TextureOptions options;
  options.address = modes_argument(address);
  options.filter = static_cast<CUfilter_mode>(find_word(filter, "filter", kFilters));
  options.normalized = normalized;
  options.normalized_floats = find_word(read, "way to read", kReads) == 1;
  const bool integers = !is_floating(type) && !options.normalized_floats;
  options.border = border_argument(border, integers);
  return options;
}

Unlocked<TextureHolder> make_texture(const py::object& source, const py::object& address,
                                     const py::object& filter, bool normalized,
                                     const py::object& read, const py::object& border,
                                     std::int64_t channel_count) {
  const unsigned channels = channels_argument(channel_count);
  if (py::isinstance<CudaArrayHolder>(source)) {
    CudaArray array = source.cast<const CudaArrayHolder&>().array;
    if (channels != 1 && channels != array.channels())
      throw InvalidArgument(
          format("kw.Texture: {} does not have {} channels", array.identify(), channels));
    const TextureOptions options =
        texture_options(address, filter, normalized, read, border, array.type());
    const GilRelease unlocked;
    return Unlocked<TextureHolder>(
        new TextureHolder{TextureObject(array, options), array, Array()});
  }
  std::optional<Array> memory;
  if (const Array* native = find_array(source.ptr())) {
    memory = *native;
  } else {
    Device& device = current_device();
    memory = adopt_foreign(source, device, current_stream(device));
  }
  if (!memory)
    throw ArgumentError(format(
        "kw.Texture wants a kw.CudaArray or an array of a device, got {}{}", type_name(source),
        py::isinstance<py::array>(source) ? ": copy it to the device with kw.asarray(x)" : ""));
  const TextureMemory rows = texture_memory(*memory, channels);
  const TextureOptions options =
      texture_options(address, filter, normalized, read, border, memory->type());
  const GilRelease unlocked;
  return Unlocked<TextureHolder>(new TextureHolder{TextureObject(memory->device(), rows, options),
                                                   std::nullopt, std::move(*memory)});
}

Unlocked<SurfaceHolder> make_surface(const py::object& source) {
  if (!py::isinstance<CudaArrayHolder>(source))
    throw ArgumentError(format("kw.Surface wants a kw.CudaArray, got {}", type_name(source)));
  CudaArray array = source.cast<const CudaArrayHolder&>().array;
  const GilRelease unlocked;
  return Unlocked<SurfaceHolder>(new SurfaceHolder{SurfaceObject(array), array});
}

py::tuple address_words(const TextureHolder& self) {
  const auto& modes = self.texture.options().address;
  const auto word = [](CUaddress_mode mode) { return kModes[static_cast<std::size_t>(mode)]; };
  return py::make_tuple(word(modes[0]), word(modes[1]), word(modes[2]));
}

py::object texture_source(const TextureHolder& self) {
  if (self.array)
    return py::cast(new CudaArrayHolder{*self.array}, py::return_value_policy::take_ownership);
  return py::cast(self.memory);
}

template <typename T>
T* exact(PyObject* object) noexcept {
  static auto* type = reinterpret_cast<PyTypeObject*>(py::type::of<T>().inc_ref().ptr());
  return object != nullptr && Py_TYPE(object) == type ? instance_value<T>(object) : nullptr;
}

void bind_texture_class(py::module_& m) {
  using Holder = TextureHolder;
  py::class_<Holder, Unlocked<Holder>>(m, "Texture", py::is_final())
      .def(py::init(&make_texture), py::arg("source"), py::kw_only(),
           py::arg("address") = py::str("clamp"), py::arg("filter") = py::str("point"),
           py::arg("normalized") = false, py::arg("read") = py::str("element"),
           py::arg("border") = py::int_(0), py::arg("channels") = 1)
      .def_property_readonly("source", &texture_source)
      .def_property_readonly("address", &address_words)
      .def_property_readonly(
          "filter",
          [](const Holder& o) {
            return kFilters[static_cast<std::size_t>(o.texture.options().filter)];
          })
      .def_property_readonly("normalized",
                             [](const Holder& o) { return o.texture.options().normalized; })
      .def_property_readonly(
          "read",
          [](const Holder& o) { return kReads[o.texture.options().normalized_floats ? 1 : 0]; })
      .def_property_readonly("device",
                             [](const Holder& o) { return DeviceObject{&o.texture.device()}; })
      .def_property_readonly("handle", [](const Holder& o) { return o.texture.handle(); })
      .def("__repr__",
           [](const Holder& o) { return text_object("<Texture: " + o.texture.identify() + ">"); });
}

void bind_surface_class(py::module_& m) {
  using Holder = SurfaceHolder;
  py::class_<Holder, Unlocked<Holder>>(m, "Surface", py::is_final())
      .def(py::init(&make_surface), py::arg("source"))
      .def_property_readonly("source",
                             [](const Holder& o) {
                               return py::cast(new CudaArrayHolder{o.array},
                                               py::return_value_policy::take_ownership);
                             })
      .def_property_readonly("device",
                             [](const Holder& o) { return DeviceObject{&o.surface.device()}; })
      .def_property_readonly("handle", [](const Holder& o) { return o.surface.handle(); })
      .def("__repr__",
           [](const Holder& o) { return text_object("<Surface: " + o.surface.identify() + ">"); });
}

}  // namespace

const std::shared_ptr<TrackedObject>* texture_or_surface(PyObject* object) noexcept {
  if (const auto* texture = exact<TextureHolder>(object)) return &texture->texture.object();
  if (const auto* surface = exact<SurfaceHolder>(object)) return &surface->surface.object();
  return nullptr;
}

void bind_texture(py::module_& m) {
  bind_texture_class(m);
  bind_surface_class(m);
  texture_or_surface(Py_None);  // finds the types now: launches ask without the GIL
}

}  // namespace kernwright::python
