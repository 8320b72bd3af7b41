// Asking Python functions for memory.
#include "bindings/memory/callback_resource.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/device.h"

#include <utility>

namespace kernwright::python {
namespace {

Stream named(Device& device, const Stream& stream) {
  return stream ? stream : Stream::legacy(device);
}

}  // namespace

CallbackResource::CallbackResource(Device& device, py::function allocate, py::function deallocate)
    : device_(device), allocate_(std::move(allocate)), deallocate_(std::move(deallocate)) {}

CallbackResource::~CallbackResource() {
  const GilAcquire locked;
  py::object functions[] = {std::move(allocate_), std::move(deallocate_)};
  if (locked) return;
  for (py::object& function : functions) function.release();  // they went with the interpreter
}

CUdeviceptr CallbackResource::ask(std::size_t bytes, const Stream& stream) {
  const GilAcquire locked;
  if (!locked) throw Error("a CallbackResource cannot be asked for memory any more: Python ends");
  try {
    const auto address = allocate_(bytes, named(device_, stream)).cast<CUdeviceptr>();
    if (address != 0 && address % 256 == 0) return address;
    throw Error(
        format("the allocate function of a CallbackResource gave {:#x} for {} bytes: an "
               "address is a multiple of 256, and not 0",
               address, bytes));
  } catch (const py::cast_error&) {
    throw Error("the allocate function of a CallbackResource did not return an address");
  } catch (py::error_already_set& failure) {
    const std::string text = failure.what();
    if (!failure.matches(PyExc_MemoryError)) {
      throw Error("the allocate function of a CallbackResource failed: " + text);
    }
    const MemoryStats now = ledger_.stats();
    throw OutOfMemory(format("{}: no memory for {} bytes from a CallbackResource: {}",
                             device_.identify(), bytes, text),
                      bytes, now.used, now.used, 0);
  }
}

CUdeviceptr CallbackResource::allocate(std::size_t bytes, const Stream& stream) {
  require_allocatable(device_, bytes, stream);
  device_.require_usable();
  const AllocationLedger::Promise promise(ledger_, bytes);
  if (!promise) {
    ledger_.note_failure();
    const MemoryStats now = ledger_.stats();
    throw OutOfMemory(
        format("{}: no memory for {} bytes, over the limit of {} bytes; {} bytes used",
               device_.identify(), bytes, now.limit, now.used),
        bytes, now.used, now.used, now.limit - now.used);
  }
  CUdeviceptr address = 0;
  try {
    address = ask(bytes, stream);
  } catch (const OutOfMemory&) {
    ledger_.note_failure();
    throw;
  }
  ledger_.add(address, bytes, stream.id());
  return address;
}

void CallbackResource::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  ledger_.remove(address, bytes);
  const GilAcquire locked;
  if (!locked) return;
  try {
    deallocate_(address, bytes, named(device_, stream));
  } catch (py::error_already_set& failure) {
    throw Error(std::string("the deallocate function of a CallbackResource failed: ") +
                failure.what());
  }
}

void CallbackResource::deallocate(CUdeviceptr address, std::size_t bytes,
                                  const Stream& stream) noexcept {
  if (!may_release(device_)) return;
  try {
    release(address, bytes, stream);
  } catch (const std::exception& error) {
    log_release_failure(name(), error.what());
  }
}

void CallbackResource::set_limit(std::size_t bytes) {
  if (!ledger_.set_limit(bytes)) throw_limit_below_use(device_, bytes, ledger_.stats().used);
}

}  // namespace kernwright::python
