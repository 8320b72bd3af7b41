// Device memory without a shape, for Python: a C type, so it costs little more than the pool.
#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "core/device.h"
#include "core/runtime.h"
#include "memory/allocation_site.h"

#include <new>
#include <utility>

namespace kernwright::python {
namespace {

/// A block's property; made in place inside the Python object.
struct BlockValue {
  std::shared_ptr<MemoryResource> resource;
  Stream stream;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
};

struct BlockObject {
  PyObject_HEAD BlockValue value;
};

BlockValue& block_value(PyObject* self) { return reinterpret_cast<BlockObject*>(self)->value; }

/// Gives the memory back; a second time is a no-op.
void free_block(BlockValue& value) noexcept {
  if (value.address == 0) return;
  value.resource->deallocate(std::exchange(value.address, 0), value.bytes, value.stream);
}

void destroy(PyObject* self) {
  BlockValue& value = block_value(self);
  {
    const GilRelease unlocked;
    free_block(value);
    value.~BlockValue();
  }
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get_pointer(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const BlockValue& value = block_value(self);
    if (value.address == 0 && value.bytes != 0) {
      throw InvalidArgument(
          format("a memory block of {} was freed already", counted(value.bytes, "byte")));
    }
    return PyLong_FromUnsignedLongLong(value.address);
  });
}

PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(block_value(self).bytes); }

PyObject* get_device(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    return py::cast(DeviceObject{&block_value(self).resource->device()}).release().ptr();
  });
}

PyObject* free_now(PyObject* self, PyObject* const*, Py_ssize_t count, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (count != 0 || keywords != nullptr) throw ArgumentError("free() takes no arguments");
    without_gil([&] { free_block(block_value(self)); });
    Py_RETURN_NONE;
  });
}

PyObject* represent(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    const BlockValue& value = block_value(self);
    const bool freed = value.address == 0 && value.bytes != 0;
    return py::str(format("<MemoryBlock of {} on {}{}>", counted(value.bytes, "byte"),
                          value.resource->device().label(), freed ? ", freed" : ""))
        .release()
        .ptr();
  });
}

PyGetSetDef getters[] = {
    {"ptr", get_pointer, nullptr, "Device address.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Size in bytes.", nullptr},
    {"device", get_device, nullptr, "The device of the memory.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"free", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(free_now)),
     METH_FASTCALL | METH_KEYWORDS, "Gives the memory back before the object goes."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_doc, const_cast<char*>("Device memory that is freed with this object.")},
    {0, nullptr},
};

PyType_Spec spec = {
    "kernwright._core.MemoryBlock",
    sizeof(BlockObject),
    0,
#if PY_VERSION_HEX >= 0x030A0000
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
#else
    Py_TPFLAGS_DEFAULT,
#endif
    slots,
};

PyTypeObject* block_type() {
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

/// Memory at hand is taken with the GIL held: it takes less time than to let go of the GIL.
CUdeviceptr allocate(MemoryResource& resource, std::size_t bytes, const Stream& stream) {
  const AllocationSiteScope scope(user_site());
  if (const CUdeviceptr address = resource.try_allocate(bytes, stream)) return address;
  const GilRelease unlocked;
  return resource.allocate(bytes, stream);
}

PyObject* make_block(PyObject* const* arguments, Py_ssize_t count) {
  if (count < 1 || count > 2) {
    throw ArgumentError(
        format("alloc(nbytes, stream=None) takes one or two arguments, got {}", count));
  }
  const std::size_t bytes = bytes_argument(arguments[0], "a size");
  Stream stream;
  Device* device = nullptr;
  if (count == 2 && py::isinstance<Stream>(arguments[1])) {
    stream = py::handle(arguments[1]).cast<const Stream&>();
    device = &stream.device();
  } else {
    device = &current_device();
    stream = count == 2 && arguments[1] != Py_None ? stream_argument(arguments[1], *device)
                                                   : current_stream(*device);
  }
  std::shared_ptr<MemoryResource> resource = known_default_resource(*device);
  if (resource == nullptr) resource = without_gil([&] { return default_resource(*device); });
  const CUdeviceptr address = bytes != 0 ? allocate(*resource, bytes, stream) : 0;
  PyTypeObject* const type = block_type();
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    if (address != 0) without_gil([&] { resource->deallocate(address, bytes, stream); });
    throw py::error_already_set();
  }
  new (&block_value(self)) BlockValue{std::move(resource), std::move(stream), address, bytes};
  return self;
}

PyObject* alloc(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    if (keywords != nullptr) {
      throw ArgumentError("alloc(nbytes, stream=None) takes its arguments by position");
    }
    return make_block(arguments, count);
  });
}

PyMethodDef function = {"alloc", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(alloc)),
                        METH_FASTCALL | METH_KEYWORDS,
                        "alloc($module, nbytes, stream=None, /)\n--\n\n"
                        "Device memory of that many bytes from the device's resource, in the order "
                        "of the stream."};

}  // namespace

void bind_memory_block(py::module_& m) {
  if (block_type() == nullptr) throw py::error_already_set();
  m.attr("MemoryBlock") =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(block_type()));
  m.attr("alloc") = py::reinterpret_steal<py::object>(
      PyCFunction_NewEx(&function, nullptr, m.attr("__name__").ptr()));
}

}  // namespace kernwright::python
