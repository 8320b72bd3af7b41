// Reading other libraries' device arrays, each type by the quickest way that it offers.
#include "foreign.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/capture.h"
#include "core/device.h"
#include "core/event.h"
#include "dlpack.h"
#include "dtype.h"
#include "python_support.h"

#include <algorithm>
#include <unordered_map>

namespace kernwright::python {
namespace {

enum class Way { torch, cupy, interface, dlpack, none };

bool is_legacy(std::uintptr_t handle) { return handle <= 1; }

[[noreturn]] void refuse_place(py::handle value, const std::string& place, const Device& device) {
  const char* help = device.is_simulated()
                         ? "set KERNWRIGHT_DEVICE=cuda to run on the GPU, or copy its data with "
                           "kw.asarray(a NumPy array of it)"
                         : "copy it to the kernel's device first";
  throw ArgumentError(format("a {} on {}, but the launch is on {}; {}", type_name(value), place,
                             device.identify(), help));
}

Way find_way(py::handle value) {
  const std::string name = type_name(value);
  if (name.starts_with("torch.") && py::hasattr(value, "data_ptr")) return Way::torch;
  if (name.starts_with("cupy.") && py::hasattr(value, "data")) return Way::cupy;
  // Subclasses of torch.Tensor live in modules of their own (torch.nn.Parameter is one of torch).
  if (py::hasattr(value, "data_ptr") && py::hasattr(value, "is_contiguous")) return Way::torch;
  if (py::hasattr(value, "__cuda_array_interface__")) return Way::interface;
  if (py::hasattr(value, "__dlpack__") && py::hasattr(value, "__dlpack_device__")) {
    return Way::dlpack;
  }
  return Way::none;
}

/// The way to read `value`, remembered for its type. Only types with a way are remembered.
Way way_of(py::handle value) {
  static auto* ways = new std::unordered_map<PyTypeObject*, Way>;
  const auto found = ways->find(Py_TYPE(value.ptr()));
  if (found != ways->end()) return found->second;
  const Way way = find_way(value);
  if (way == Way::torch || way == Way::cupy || way == Way::dlpack) {
    Py_INCREF(Py_TYPE(value.ptr()));
    ways->emplace(Py_TYPE(value.ptr()), way);
  }
  return way;
}

/// torch's dtype objects live as long as torch does.
std::optional<ScalarType> torch_type(py::handle dtype, std::string& text) {
  static auto* known = new std::unordered_map<PyObject*, ScalarType>;
  const auto found = known->find(dtype.ptr());
  if (found != known->end()) return found->second;
  text = py::str(dtype).cast<std::string>();
  const auto type = scalar_from_name(text.substr(text.rfind('.') + 1));
  if (type) known->emplace(dtype.inc_ref().ptr(), *type);
  return type;
}

void read_torch(py::handle value, Device& device, const Stream& stream, ArrayArgument& argument) {
  if (!value.attr("is_cuda").cast<bool>()) {
    refuse_place(value, py::str(value.attr("device")).cast<std::string>(), device);
  }
  const int index = value.attr("get_device")().cast<int>();
  if (device.is_simulated() || index != device.ordinal()) {
    refuse_place(value, format("cuda:{}", index), device);
  }
  argument.type = torch_type(value.attr("dtype"), argument.type_text);
  argument.address = value.attr("data_ptr")().cast<std::uintptr_t>();
  argument.contiguous = value.attr("is_contiguous")().cast<bool>();
  argument.nbytes = value.attr("nbytes").cast<std::size_t>();
  static PyObject* raw_stream = py::module_::import("torch._C")
                                    .attr("_cuda_getCurrentRawStream")
                                    .cast<py::object>()
                                    .release()
                                    .ptr();
  order_after(device, py::handle(raw_stream)(index).cast<std::uintptr_t>(), stream);
}

void read_cupy(py::handle value, Device& device, const Stream& stream, ArrayArgument& argument) {
  const int index = value.attr("device").attr("id").cast<int>();
  if (device.is_simulated() || index != device.ordinal()) {
    refuse_place(value, format("cuda:{}", index), device);
  }
  const py::object dtype = value.attr("dtype");
  argument.type = scalar_of_dtype(dtype);
  if (!argument.type) argument.type_text = py::str(dtype).cast<std::string>();
  argument.address = value.attr("data").attr("ptr").cast<std::uintptr_t>();
  argument.contiguous = value.attr("flags").attr("c_contiguous").cast<bool>();
  argument.nbytes = value.attr("nbytes").cast<std::size_t>();
  static PyObject* current = py::module_::import("cupy.cuda")
                                 .attr("get_current_stream")
                                 .cast<py::object>()
                                 .release()
                                 .ptr();
  order_after(device, py::handle(current)().attr("ptr").cast<std::uintptr_t>(), stream);
}

/// Whether the driver of `device` knows `address` as its own memory.
bool owns_address(Device& device, CUdeviceptr address) {
  const ContextGuard guard(device);
  int ordinal = -1;
  const CUresult result =
      device.driver().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  return result == CUDA_SUCCESS && ordinal == device.ordinal();
}

Shape shape_of(py::handle extents) {
  Shape shape;
  for (const py::handle extent : extents) shape.push_back(extent.cast<std::int64_t>());
  return shape;
}

/// The element type of a typestr; raw bytes ("|V8") count as uint8 with one more axis.
ScalarType type_of_typestr(const std::string& typestr, Shape& shape, py::handle value) {
  const py::object dtype = py::module_::import("numpy").attr("dtype")(typestr);
  if (const auto type = scalar_of_dtype(dtype)) return *type;
  if (dtype.attr("kind").cast<std::string>() != "V") {
    throw ArgumentError(format("a {} of {}, which no array of ours can hold", type_name(value),
                               py::str(dtype).cast<std::string>()));
  }
  shape.push_back(dtype.attr("itemsize").cast<std::int64_t>());
  return ScalarType::uint8;
}

Array adopt_interface(py::handle value, Device& device, const Stream& stream) {
  const py::dict interface = value.attr("__cuda_array_interface__");
  const py::tuple data = interface["data"];
  const auto address = data[0].cast<std::uintptr_t>();
  Shape shape = shape_of(interface["shape"]);
  const std::size_t axes = shape.size();
  const ScalarType type = type_of_typestr(interface["typestr"].cast<std::string>(), shape, value);
  if (address != 0 && !owns_address(device, address)) {
    refuse_place(value, "another device", device);
  }
  Shape strides = contiguous_strides(shape, scalar_size(type));
  if (interface.contains("strides") && !interface["strides"].is_none()) {
    const Shape given = shape_of(interface["strides"]);
    if (given.size() != axes) {
      throw ArgumentError(
          format("a {} whose __cuda_array_interface__ has {} extents and {} strides",
                 type_name(value), axes, given.size()));
    }
    std::copy(given.begin(), given.end(), strides.begin());
  }
  if (interface.contains("stream") && !interface["stream"].is_none()) {
    order_after(device, interface["stream"].cast<std::uintptr_t>(), stream);
  }
  return Array::adopt(device, address, shape, strides, type,
                      keep_alive(py::reinterpret_borrow<py::object>(value)), data[1].cast<bool>());
}

}  // namespace

void order_after(Device& device, std::uintptr_t producer, const Stream& consumer) {
  const auto handle = consumer ? reinterpret_cast<std::uintptr_t>(consumer.handle()) : 0;
  if (producer == handle || (is_legacy(producer) && is_legacy(handle))) return;
  // A graph cannot wait for work outside it: its launches are to be ordered, not its capture.
  if (any_capture() && capture_of(consumer) != nullptr) return;
  const Stream from = is_legacy(producer)
                          ? Stream::legacy(device)
                          : Stream::borrow(device, reinterpret_cast<CUstream>(producer));
  Event event(device, false);
  event.record(from);
  (consumer ? consumer : Stream::legacy(device)).wait(event);
}

Foreign read_foreign(py::handle value, Device& device, const Stream& stream,
                     ArrayArgument& argument) {
  const Way way = way_of(value);
  if (way == Way::none) return Foreign::no_array;
  if (way == Way::torch) {
    read_torch(value, device, stream, argument);
    return Foreign::device_array;
  }
  if (way == Way::cupy) {
    read_cupy(value, device, stream, argument);
    return Foreign::device_array;
  }
  DLPackPlace place;
  if (way == Way::dlpack && dlpack_place(value, place) && place.is_host()) {
    return Foreign::host_array;
  }
  if (way == Way::dlpack && !is_on(place, device)) refuse_place(value, place_text(place), device);
  const Array array = way == Way::dlpack ? adopt_dlpack(value, device, stream)
                                         : adopt_interface(value, device, stream);
  argument.address = array.address();
  argument.type = array.type();
  argument.nbytes = array.nbytes();
  argument.contiguous = array.is_contiguous();
  argument.read_only = array.read_only();
  return Foreign::device_array;
}

std::optional<Array> adopt_foreign(py::handle value, Device& device, const Stream& stream) {
  DLPackPlace place;
  // DLPack first: it spells bfloat16 and float8, which the interface of CUDA arrays cannot.
  if (dlpack_place(value, place)) {
    if (place.is_host()) return std::nullopt;
    if (!is_on(place, device)) refuse_place(value, place_text(place), device);
    return adopt_dlpack(value, device, stream);
  }
  if (!py::hasattr(value, "__cuda_array_interface__")) return std::nullopt;
  return adopt_interface(value, device, stream);
}

}  // namespace kernwright::python
