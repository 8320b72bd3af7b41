// Reading other libraries' device arrays, each type by its quickest way.
#include "bindings/array/foreign.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/cuda_array_interface.h"
#include "bindings/array/dlpack.h"
#include "bindings/array/dlpack_exchange.h"
#include "bindings/support/interned_name.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"

#include <unordered_map>

namespace kernwright::python {
namespace {

enum class Way { exchange, torch, cupy, interface, dlpack, none };

/// How arrays of one type are read.
struct Reader {
  Way way = Way::none;
  const DLPackExchangeAPI* exchange = nullptr;  ///< for Way::exchange
};

bool is_legacy(std::uintptr_t handle) { return handle <= 1; }

Reader find_reader(py::handle value) {
  if (const auto* api = find_exchange(Py_TYPE(value.ptr()))) return {Way::exchange, api};
  const std::string name = type_name(value);
  if (name.starts_with("torch.") && py::hasattr(value, "data_ptr")) return {Way::torch};
  if (name.starts_with("cupy.") && py::hasattr(value, "data")) return {Way::cupy};
  // Subclasses of torch.Tensor live in modules of their own (torch.nn.Parameter is one of torch).
  if (py::hasattr(value, "data_ptr") && py::hasattr(value, "is_contiguous")) return {Way::torch};
  if (has_attribute(value, "__cuda_array_interface__")) return {Way::interface};
  if (has_attribute(value, "__dlpack__") && has_attribute(value, "__dlpack_device__")) {
    return {Way::dlpack};
  }
  return {};
}

/// The way to read `value`, remembered for its type. Only types with a way are remembered, and an
/// interface is a matter of the single array.
Reader choose_reader(py::handle value) {
  static auto* readers = new std::unordered_map<PyTypeObject*, Reader>;
  const auto found = readers->find(Py_TYPE(value.ptr()));
  if (found != readers->end()) return found->second;
  const Reader reader = find_reader(value);
  if (reader.way != Way::none && reader.way != Way::interface) {
    Py_INCREF(Py_TYPE(value.ptr()));
    readers->emplace(Py_TYPE(value.ptr()), reader);
  }
  return reader;
}

/// A function of another library, looked up once.
py::object import_function(const char* module, const char* name) {
  return py::module_::import(module).attr(name).cast<py::object>();
}

void read_through_exchange(const DLPackExchangeAPI& api, py::handle value, Device& device,
                           const Stream& stream, ArrayArgument& argument) {
  DLDevice place{};
  read_exchange(api, value, argument, place);
  const DLPackPlace where{place.device_type, place.device_id};
  if (!is_on(where, device)) refuse_place(value, place_text(where), device);
  order_after(device, exchange_stream(api, place), stream);
}

void read_torch(py::handle value, Device& device, const Stream& stream, ArrayArgument& argument) {
  static const InternedName get_device("get_device"), dtype("dtype"), data_ptr("data_ptr"),
      is_contiguous("is_contiguous"), nbytes("nbytes");
  const int index = get_device.call(value).cast<int>();  // -1 in host memory
  if (device.is_simulated() || index != device.ordinal()) {
    refuse_place(value, index < 0 ? "host memory" : format("cuda:{}", index), device);
  }
  argument.type = torch_scalar_type(dtype.get(value), argument.type_text);
  argument.address = data_ptr.call(value).cast<std::uintptr_t>();
  argument.contiguous = is_contiguous.call(value).cast<bool>();
  argument.nbytes = nbytes.get(value).cast<std::size_t>();
  static constinit KeptObject raw_stream;
  const py::handle current =
      raw_stream.get([] { return import_function("torch._C", "_cuda_getCurrentRawStream"); });
  order_after(device, current(index).cast<std::uintptr_t>(), stream);
}

void read_cupy(py::handle value, Device& device, const Stream& stream, ArrayArgument& argument) {
  static const InternedName data("data"), device_id("device_id"), dtype("dtype"), ptr("ptr"),
      flags("flags"), c_contiguous("c_contiguous"), nbytes("nbytes");
  const py::object memory = data.get(value);
  const int index = device_id.get(memory).cast<int>();
  if (device.is_simulated() || index != device.ordinal()) {
    refuse_place(value, format("cuda:{}", index), device);
  }
  const py::object element = dtype.get(value);
  argument.type = dtype_scalar(element);
  if (!argument.type) argument.type_text = py::str(element).cast<std::string>();
  argument.address = ptr.get(memory).cast<std::uintptr_t>();
  argument.contiguous = c_contiguous.get(flags.get(value)).cast<bool>();
  argument.nbytes = nbytes.get(value).cast<std::size_t>();
  static constinit KeptObject current_stream;
  const py::handle current =
      current_stream.get([] { return import_function("cupy.cuda", "get_current_stream"); });
  order_after(device, ptr.get(current()).cast<std::uintptr_t>(), stream);
}

}  // namespace

std::optional<ScalarType> torch_scalar_type(py::handle dtype, std::string& text) {
  // torch's dtype objects live as long as torch does.
  static auto* known = new std::unordered_map<PyObject*, ScalarType>;
  const auto found = known->find(dtype.ptr());
  if (found != known->end()) return found->second;
  text = py::str(dtype).cast<std::string>();
  const auto type = scalar_from_name(text.substr(text.rfind('.') + 1));
  if (type) known->emplace(dtype.inc_ref().ptr(), *type);
  return type;
}

void refuse_place(py::handle value, const std::string& place, const Device& device) {
  const char* help = device.is_simulated()
                         ? "set KERNWRIGHT_DEVICE=cuda to run on the GPU, or copy its data with "
                           "kw.asarray(a NumPy array of it)"
                         : "copy it to the kernel's device first";
  throw ArgumentError(format("a {} on {}, but the launch is on {}; {}", type_name(value), place,
                             device.identify(), help));
}

void order_after(Device& device, std::uintptr_t producer, const Stream& consumer) {
  const auto handle = consumer ? reinterpret_cast<std::uintptr_t>(consumer.handle()) : 0;
  if (producer == handle || (is_legacy(producer) && is_legacy(handle))) return;
  // A graph cannot wait for work outside it: its launches are to be ordered, not its capture.
  const GilRelease unlocked;
  if (any_capture() && find_capture(consumer) != nullptr) return;
  const Stream from = is_legacy(producer)
                          ? Stream::legacy(device)
                          : Stream::borrow(device, reinterpret_cast<CUstream>(producer));
  Event event(device, false);
  event.record(from);
  (consumer ? consumer : Stream::legacy(device)).wait(event);
}

Foreign read_foreign(py::handle value, Device& device, const Stream& stream,
                     ArrayArgument& argument) {
  const Reader reader = choose_reader(value);
  switch (reader.way) {
    case Way::none:
      return Foreign::no_array;
    case Way::exchange:
      read_through_exchange(*reader.exchange, value, device, stream, argument);
      return Foreign::device_array;
    case Way::torch:
      read_torch(value, device, stream, argument);
      return Foreign::device_array;
    case Way::cupy:
      read_cupy(value, device, stream, argument);
      return Foreign::device_array;
    case Way::dlpack:
    case Way::interface:
      break;
  }
  const bool is_dlpack = reader.way == Way::dlpack;
  DLPackPlace place;
  if (is_dlpack && dlpack_place(value, place) && place.is_host()) return Foreign::host_array;
  if (is_dlpack && !is_on(place, device)) refuse_place(value, place_text(place), device);
  const Array array =
      is_dlpack ? adopt_dlpack(value, device, stream) : adopt_interface(value, device, stream);
  argument.address = array.address();
  argument.type = array.type();
  argument.nbytes = array.nbytes();
  argument.contiguous = array.is_contiguous();
  argument.read_only = array.read_only();
  return Foreign::device_array;
}

std::optional<Array> adopt_foreign(py::handle value, Device& device, const Stream& stream) {
  DLPackPlace place;
  // DLPack first: it spells bfloat16 and float8; the interface of CUDA arrays cannot.
  if (dlpack_place(value, place)) {
    if (place.is_host()) return std::nullopt;
    if (!is_on(place, device)) refuse_place(value, place_text(place), device);
    return adopt_dlpack(value, device, stream);
  }
  if (!has_attribute(value, "__cuda_array_interface__")) return std::nullopt;
  return adopt_interface(value, device, stream);
}

}  // namespace kernwright::python
