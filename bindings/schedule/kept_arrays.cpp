// Content moves in and out of the same array objects.
#include "bindings/schedule/kept_arrays.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/values/array_support.h"
#include "kernels_src/copy/copy.h"
#include "memory/memory_resource.h"

#include <utility>

namespace kernwright::python {
namespace {

Array pinned(EvictableBuffer& buffer, const Shape& shape, ScalarType type) {
  auto held = std::make_shared<EvictableBuffer::Pin>(buffer.pin());
  Buffer& memory = *held->buffer();
  return Array::over(std::move(held), memory, shape, type);
}

}  // namespace

KeptArrays::KeptArrays(const py::list& arrays, std::shared_ptr<EvictionGroup> group)
    : group_(std::move(group)) {
  try {
    for (const py::handle array : arrays) add(array);
  } catch (...) {
    give_back();
    throw;
  }
}

void KeptArrays::add(py::handle array) {
  Array& held = *find_array(array.ptr());
  Device& device = held.device();
  const Stream stream = current_stream(device);
  if (held.owner() != nullptr && held.owner().use_count() != 1) {
    throw InvalidArgument(format(
        "keep(): another object has the memory of the {}: drop views of it, and pass x.copy() "
        "in the place of a view",
        held.identify()));
  }
  Entry entry{array.ptr(), held.shape(), held.type(), nullptr};
  {
    const GilRelease unlocked;
    entry.buffer = std::make_unique<EvictableBuffer>(default_resource(device), held.nbytes(),
                                                     stream, LaunchSite::here(), group_);
    Array target = pinned(*entry.buffer, entry.shape, entry.type);
    kernels::copy_elements(target, held, stream);
    held = held.parked();
  }
  Py_INCREF(entry.object);
  entries_.push_back(std::move(entry));
}

KeptArrays::~KeptArrays() {
  const GilAcquire locked;
  if (locked) give_back();  // else the interpreter ends: its objects are left alone
}

/// With the GIL held.
void KeptArrays::give_back() noexcept {
  try {
    const GilRelease unlocked;
    bring();
  } catch (const std::exception& error) {
    log_release_failure("arrays that a scheduler kept", error.what());
  }
  for (const Entry& entry : entries_) Py_DECREF(entry.object);
}

std::size_t KeptArrays::bytes() const noexcept {
  std::size_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.buffer->bytes();
  return sum;
}

std::size_t KeptArrays::evict() {
  std::size_t moved = 0;
  for (const Entry& entry : entries_) {
    if (entry.buffer->evict()) moved += entry.buffer->bytes();
  }
  return moved;
}

void KeptArrays::bring() {
  std::vector<Array> arrays;
  for (const Entry& entry : entries_) {
    arrays.push_back(pinned(*entry.buffer, entry.shape, entry.type));
  }
  {
    const GilAcquire locked;
    if (!locked) return;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      std::swap(*find_array(entries_[i].object), arrays[i]);
    }
  }
}

void KeptArrays::let_go() noexcept {
  std::vector<Array> arrays;  // pins end with the GIL given up
  const GilAcquire locked;
  if (!locked) return;
  for (const Entry& entry : entries_) {
    Array& held = *find_array(entry.object);
    arrays.push_back(std::exchange(held, held.parked()));
  }
  const GilRelease unlocked;
  arrays.clear();
}

void bind_kept_arrays(py::module_& m) {
  using Kept = KeptArrays;
  py::class_<Kept, std::shared_ptr<Kept>>(m, "_KeptArrays")
      .def(py::init<const py::list&, std::shared_ptr<EvictionGroup>>())
      .def("enter", [](Kept& k) { without_gil([&] { k.enter(); }); })
      .def("leave", [](Kept& k) { without_gil([&] { k.leave(); }); })
      .def("evict", [](Kept& k) { return without_gil([&] { return k.evict(); }); })
      .def_property_readonly("bytes", &Kept::bytes)
      .def_property_readonly("group", &Kept::group);
}

}  // namespace kernwright::python
