// Partitions of devices for Python, and priorities of streams by name.
#include "bindings/launch/bind_partition.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "memory/reclaim.h"

#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// None in every place, one value for all partitions, or one for each.
std::vector<py::object> for_each_size(const py::object& value, std::size_t count,
                                      const char* what) {
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) {
    return std::vector<py::object>(count, value);
  }
  std::vector<py::object> list;
  for (const py::handle item : value) list.push_back(py::reinterpret_borrow<py::object>(item));
  if (list.size() == count) return list;
  throw InvalidArgument(format("{} values of {} for {} partitions: one for each, or one for all",
                               list.size(), what, count));
}

template <typename T>
T number(const py::object& value, const char* what, T otherwise) {
  if (value.is_none()) return otherwise;
  const bool is_bool = PyBool_Check(value.ptr());
  const bool fits = std::is_floating_point_v<T> ? PyNumber_Check(value.ptr()) != 0
                                                : PyIndex_Check(value.ptr()) != 0;
  if (is_bool || !fits) {
    throw ArgumentError(format("{} of a partition must be {}, got {}", what,
                               std::is_floating_point_v<T> ? "a number" : "an integer",
                               short_repr(value)));
  }
  try {
    return py::cast<T>(value);
  } catch (const py::cast_error&) {
    PyErr_Clear();
    throw InvalidArgument(format("{} of a partition is out of range: {}", what, short_repr(value)));
  }
}

std::vector<PartitionRequest> make_requests(const py::object& sizes, const py::object& memory,
                                            const py::object& share, const py::object& streams) {
  if (!PyTuple_Check(sizes.ptr()) && !PyList_Check(sizes.ptr())) {
    throw ArgumentError("partitions() takes a list of numbers of multiprocessors, got " +
                        short_repr(sizes));
  }
  const auto count = static_cast<std::size_t>(py::len(sizes));
  const auto memories = for_each_size(memory, count, "memory");
  const auto shares = for_each_size(share, count, "share");
  const auto limits = for_each_size(streams, count, "streams");
  std::vector<PartitionRequest> requests(count);
  std::size_t i = 0;
  for (const py::handle size : sizes) {
    PartitionRequest& request = requests[i];
    const auto asked = py::reinterpret_borrow<py::object>(size);
    request.multiprocessors = number<int>(asked, "the size", 0);
    if (!asked.is_none() && request.multiprocessors == 0) {
      throw InvalidArgument(
          "a partition of 0 multiprocessors: name a positive number, or None for "
          "all that are left");
    }
    request.memory = number<std::uint64_t>(memories[i], "the memory", 0);
    request.share = number<double>(shares[i], "the share", 1.0);
    request.streams = number<int>(limits[i], "the limit of streams", 0);
    ++i;
  }
  return requests;
}

py::object or_none(std::uint64_t value) {
  return value == 0 ? py::object(py::none()) : py::object(py::int_(value));
}

}  // namespace

int priority_argument(const py::object& value, Device& device) {
  if (PyUnicode_Check(value.ptr())) {
    const auto name = py::cast<std::string>(value);
    for (const auto& [known, priority] : {std::pair{"high", StreamPriority::high},
                                          {"medium", StreamPriority::medium},
                                          {"low", StreamPriority::low}}) {
      if (name == known) return without_gil([&] { return priority_of(device, priority); });
    }
    throw InvalidArgument(
        format("a stream of priority {}: high, medium or low", short_repr(value)));
  }
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
    throw ArgumentError("a priority is an integer, or high, medium or low, got " +
                        short_repr(value));
  }
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (overflow != 0 || number != static_cast<int>(number)) {
    throw ArgumentRangeError("a priority of " + short_repr(value) + " is out of range");
  }
  return static_cast<int>(number);
}

py::list make_partitions(Device& device, const py::object& sizes, const py::object& memory,
                         const py::object& share, const py::object& streams) {
  const std::vector<PartitionRequest> requests = make_requests(sizes, memory, share, streams);
  std::vector<Partition> made =
      without_gil([&] { return kernwright::make_partitions(device, requests); });
  py::list list;
  for (Partition& partition : made) list.append(py::cast(std::move(partition)));
  return list;
}

py::object device_partition_rules(Device& device) {
  const PartitionRules rules = without_gil([&] { return settled_partition_rules(device); });
  return module_member("kernwright._support.device", "PartitionRules")(
      rules.supported, rules.multiprocessors, rules.minimum, rules.alignment, rules.free);
}

void bind_partition(py::module_& m) {
  py::class_<Partition, Unlocked<Partition>>(m, "Partition")
      .def_property_readonly("sms", &Partition::multiprocessors)
      .def_property_readonly(
          "asked", [](const Partition& s) { return or_none(s.request().multiprocessors); })
      .def_property_readonly("memory",
                             [](const Partition& s) { return or_none(s.request().memory); })
      .def_property_readonly("share", [](const Partition& s) { return s.request().share; })
      .def_property_readonly("streams",
                             [](const Partition& s) { return or_none(s.request().streams); })
      .def_property_readonly("live_streams", &Partition::live_streams)
      .def_property_readonly("id", &Partition::id)
      .def_property_readonly("device", [](const Partition& s) { return DeviceObject{&s.device()}; })
      .def(
          "stream",
          [](const Partition& s, const py::object& priority) {
            const int number = priority_argument(priority, s.device());
            return without_gil([&] { return s.stream(number); });
          },
          py::arg("priority") = 0)
      .def("smids",
           [](const py::object& self) {
             return module_member("kernwright._measure.places", "smids")(self);
           })
      .def("__eq__",
           [](const Partition& s, const py::object& other) {
             return py::isinstance<Partition>(other) &&
                    other.cast<const Partition&>().id() == s.id();
           })
      .def("__hash__", &Partition::id)
      .def("__repr__", [](const Partition& s) { return text_object("<" + s.identify() + ">"); });
}

}  // namespace kernwright::python
