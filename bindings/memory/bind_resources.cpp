// Memory resources for Python, and their reports.
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "bindings/memory/callback_resource.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "memory/allocation_site.h"
#include "memory/failing_adaptor.h"
#include "memory/limiting_adaptor.h"
#include "memory/managed_resource.h"
#include "memory/pinned_resource.h"
#include "memory/pool/pool_resource.h"
#include "memory/tracking_adaptor.h"

#include <mutex>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

using Resource = std::shared_ptr<MemoryResource>;

py::dict stats_dict(const MemoryStats& stats) {
  py::dict all;
  all["used"] = stats.used;
  all["used_peak"] = stats.used_peak;
  all["padding"] = stats.padding;
  all["cached"] = stats.cached;
  all["reserved"] = stats.reserved;
  all["reserved_peak"] = stats.reserved_peak;
  all["limit"] = stats.limit == 0 ? py::object(py::none()) : py::object(py::int_(stats.limit));
  all["blocks"] = stats.blocks;
  all["segments"] = stats.segments;
  all["allocations"] = stats.allocations;
  all["frees"] = stats.frees;
  all["hits"] = stats.hits;
  all["misses"] = stats.misses;
  all["evictions"] = stats.evictions;
  all["driver_allocs"] = stats.driver_allocs;
  all["driver_frees"] = stats.driver_frees;
  all["stream_waits"] = stats.stream_waits;
  all["failures"] = stats.failures;
  all["refused_frees"] = stats.refused_frees;
  return all;
}

py::dict resource_stats(const MemoryResource& resource) {
  MemoryStats stats;
  {
    const GilRelease unlocked;
    stats = resource.stats();
  }
  return stats_dict(stats);
}

py::object place_object(const LaunchSite& site) {
  const std::string place = site.to_string();
  return place.empty() ? py::object(py::none()) : text_object(place);
}

py::list resource_records(const MemoryResource& resource) {
  std::vector<AllocationRecord> records;
  {
    const GilRelease unlocked;
    records = resource.records();
  }
  py::list list;
  for (const AllocationRecord& record : records) {
    py::dict row;
    row["address"] = record.address;
    row["bytes"] = record.bytes;
    row["stream"] = record.stream;
    row["serial"] = record.serial;
    row["place"] = place_object(record.site);
    list.append(std::move(row));
  }
  return list;
}

py::dict segment_dict(const SnapshotSegment& segment) {
  py::list blocks;
  for (const SnapshotBlock& block : segment.blocks) {
    py::dict row;
    row["offset"] = block.address - segment.address;
    row["bytes"] = block.bytes;
    row["requested"] = block.requested;
    row["state"] = block.state;
    row["stream"] = block.stream;
    row["place"] = place_object(block.site);
    blocks.append(std::move(row));
  }
  py::dict row;
  row["address"] = segment.address;
  row["bytes"] = segment.bytes;
  row["graph"] = segment.belongs_to_graph;
  row["blocks"] = std::move(blocks);
  return row;
}

/// A resource without segments shows each allocation as one.
MemorySnapshot plain_snapshot(const MemoryResource& resource) {
  MemorySnapshot snapshot;
  snapshot.resource = resource.name();
  snapshot.stats = resource.stats();
  snapshot.history = resource.history();
  for (const AllocationRecord& record : resource.records()) {
    SnapshotBlock block{record.address, record.bytes,  record.bytes,
                        "used",         record.stream, record.site};
    snapshot.segments.push_back({record.address, record.bytes, false, {std::move(block)}});
  }
  return snapshot;
}

py::dict resource_snapshot(const MemoryResource& resource) {
  MemorySnapshot snapshot;
  {
    const GilRelease unlocked;
    const MemoryResource* inner = &resource;
    while (const auto* adaptor = dynamic_cast<const ResourceAdaptor*>(inner)) {
      inner = adaptor->upstream().get();
    }
    const auto* pool = dynamic_cast<const PoolResource*>(inner);
    snapshot = pool != nullptr ? pool->snapshot() : plain_snapshot(resource);
    snapshot.resource = resource.name();
  }
  py::list segments;
  for (const SnapshotSegment& segment : snapshot.segments) segments.append(segment_dict(segment));
  py::list history;
  for (const HistorySample& sample : snapshot.history) {
    py::dict row;
    row["seconds"] = sample.seconds;
    row["operation"] = sample.operation;
    row["used"] = sample.used;
    row["reserved"] = sample.reserved;
    row["largest_free"] = sample.largest_free;
    history.append(std::move(row));
  }
  py::dict all;
  all["resource"] = snapshot.resource;
  all["device"] = resource.device().label();
  all["stats"] = stats_dict(snapshot.stats);
  all["segments"] = std::move(segments);
  all["history"] = std::move(history);
  return all;
}

std::size_t limit_argument(const py::object& limit) {
  if (limit.is_none()) return 0;
  const std::size_t bytes = bytes_argument(limit, "a limit");
  if (bytes == 0) {
    throw InvalidArgument("a limit of 0 bytes leaves no memory at all; None takes the limit away");
  }
  return bytes;
}

void define_base(py::module_& m) {
  py::class_<MemoryResource, Resource>(m, "MemoryResource")
      .def_property_readonly("name", &MemoryResource::name)
      .def_property_readonly("device",
                             [](const MemoryResource& r) { return DeviceObject{&r.device()}; })
      .def("stats", &resource_stats)
      .def("records", &resource_records)
      .def("snapshot", &resource_snapshot)
      .def(
          "trim",
          [](MemoryResource& r, const py::object& keep) {
            const std::size_t bytes = bytes_argument(keep, "what to keep");
            const GilRelease unlocked;
            return r.trim(bytes);
          },
          py::arg("keep") = 0)
      .def(
          "set_limit",
          [](MemoryResource& r, const py::object& limit) {
            const std::size_t bytes = limit_argument(limit);
            const GilRelease unlocked;
            r.set_limit(bytes);
          },
          py::arg("bytes"))
      .def(
          "allocate",
          [](MemoryResource& r, const py::object& size, const py::object& stream) {
            const std::size_t bytes = bytes_argument(size, "a size");
            const Stream on =
                stream.is_none() ? current_stream(r.device()) : stream_argument(stream, r.device());
            const AllocationSiteScope scope(user_site());
            const GilRelease unlocked;
            return r.allocate(bytes, on);
          },
          py::arg("bytes"), py::arg("stream") = py::none())
      .def(
          "deallocate",
          [](MemoryResource& r, std::uint64_t address, const py::object& size,
             const py::object& stream) {
            const std::size_t bytes = bytes_argument(size, "a size");
            const Stream on =
                stream.is_none() ? current_stream(r.device()) : stream_argument(stream, r.device());
            const GilRelease unlocked;
            r.release(address, bytes, on);
          },
          py::arg("address"), py::arg("bytes"), py::arg("stream") = py::none())
      .def("__repr__", [](const MemoryResource& r) {
        return format("<{} of {}>", r.name(), r.device().label());
      });
}

template <typename T>
void define_plain(py::module_& m, const char* name) {
  py::class_<T, MemoryResource, std::shared_ptr<T>>(m, name).def(
      py::init([](const py::object& device) {
        Device& chosen = device_argument(device);
        return without_gil([&] { return std::make_shared<T>(chosen); });
      }),
      py::arg("device") = py::none());
}

/// The end of a pool waits for the device, and for those who look for memory of others: they may
/// need the GIL.
struct PoolDelete {
  void operator()(PoolResource* pool) const noexcept {
    if (PyGILState_Check() == 0) {
      delete pool;
      return;
    }
    const GilRelease unlocked;
    delete pool;
  }
};

std::shared_ptr<PoolResource> make_pool(const Resource& upstream, const py::object& device,
                                        const py::object& smallest_segment,
                                        const py::object& largest_step, double overhead,
                                        const py::object& limit) {
  Resource from = upstream;
  if (from == nullptr) {
    from = std::make_shared<DeviceResource>(device_argument(device));
  } else {
    if (!device.is_none() && &device_argument(device) != &from->device()) {
      throw InvalidArgument(format("a pool of {} cannot take memory from a resource of {}",
                                   device_argument(device).identify(), from->device().identify()));
    }
  }
  PoolResource::Options options;
  if (!smallest_segment.is_none()) {
    options.smallest_segment = bytes_argument(smallest_segment, "smallest_segment");
  }
  if (!largest_step.is_none()) {
    options.largest_step = bytes_argument(largest_step, "largest_step");
  }
  options.overhead = overhead;
  options.limit = limit_argument(limit);
  return {new PoolResource(std::move(from), options), PoolDelete()};
}

/// Trackers made by Python, for their reports at the exit of the interpreter.
struct Trackers {
  std::mutex mutex;
  std::vector<std::weak_ptr<TrackingAdaptor>> list;
};

Trackers& trackers() {
  static auto* const instance = new Trackers;
  return *instance;
}

std::vector<std::string> tracking_reports() {
  std::vector<std::shared_ptr<TrackingAdaptor>> alive;
  {
    const std::lock_guard lock(trackers().mutex);
    for (const auto& known : trackers().list) {
      if (auto tracker = known.lock()) alive.push_back(std::move(tracker));
    }
  }
  std::vector<std::string> reports;
  for (const auto& tracker : alive) {
    const std::string report = tracker->report();
    if (!report.empty()) reports.push_back(tracker->device().label() + ": " + report);
  }
  return reports;
}

void define_adaptors(py::module_& m) {
  py::class_<CallbackResource, MemoryResource, std::shared_ptr<CallbackResource>>(
      m, "CallbackResource")
      .def(py::init([](py::function allocate, py::function deallocate, const py::object& device) {
             return std::make_shared<CallbackResource>(device_argument(device), std::move(allocate),
                                                       std::move(deallocate));
           }),
           py::arg("allocate"), py::arg("deallocate"), py::arg("device") = py::none());
  py::class_<PoolResource, MemoryResource, std::shared_ptr<PoolResource>>(m, "PoolResource")
      .def(py::init(&make_pool), py::arg("upstream") = Resource(), py::kw_only(),
           py::arg("device") = py::none(), py::arg("smallest_segment") = py::none(),
           py::arg("largest_step") = py::none(),
           py::arg("overhead") = PoolResource::Options().overhead, py::arg("limit") = py::none())
      .def_property_readonly("upstream", [](const PoolResource& r) { return r.upstream(); });
  py::class_<ResourceAdaptor, MemoryResource, std::shared_ptr<ResourceAdaptor>>(m,
                                                                                "ResourceAdaptor")
      .def_property_readonly("upstream", [](const ResourceAdaptor& r) { return r.upstream(); });
  py::class_<LimitingAdaptor, ResourceAdaptor, std::shared_ptr<LimitingAdaptor>>(m,
                                                                                 "LimitingAdaptor")
      .def(py::init([](const Resource& upstream, const py::object& limit) {
             return std::make_shared<LimitingAdaptor>(upstream, bytes_argument(limit, "a limit"));
           }),
           py::arg("upstream").none(false), py::arg("limit"));
  py::class_<TrackingAdaptor, ResourceAdaptor, std::shared_ptr<TrackingAdaptor>>(m,
                                                                                 "TrackingAdaptor")
      .def(py::init([](const Resource& upstream) {
             auto made = std::make_shared<TrackingAdaptor>(upstream);
             const std::lock_guard lock(trackers().mutex);
             std::erase_if(trackers().list, [](const auto& known) { return known.expired(); });
             trackers().list.push_back(made);
             return made;
           }),
           py::arg("upstream").none(false))
      .def("report", [](const TrackingAdaptor& r) { return text_object(r.report()); });
  py::class_<FailingAdaptor, ResourceAdaptor, std::shared_ptr<FailingAdaptor>>(m, "FailingAdaptor")
      .def(py::init<Resource, std::uint64_t, std::uint64_t>(), py::arg("upstream").none(false),
           py::arg("first"), py::arg("times") = 1)
      .def_property_readonly("calls", &FailingAdaptor::calls);
  m.def("_tracking_reports", [] {
    py::list list;
    for (const std::string& report : tracking_reports()) list.append(text_object(report));
    return list;
  });
}

void define_defaults(py::module_& m) {
  m.def(
      "_memory_resource",
      [](const py::object& device) {
        Device& chosen = device_argument(device);
        return without_gil([&] { return default_resource(chosen); });
      },
      py::arg("device") = py::none());
  m.def(
      "_memory_use",
      [](const Resource& resource) {
        return without_gil([&] { return set_default_resource(resource->device(), resource); });
      },
      py::arg("resource").none(false));
  m.def("_log_warning", [](const std::string& text) { log_message(LogLevel::warning, text); });
  m.def(
      "_pinned_resource",
      [](const py::object& device) { return pinned_resource(device_argument(device)); },
      py::arg("device") = py::none());
}

}  // namespace

std::size_t bytes_argument(py::handle value, const char* what) {
  const bool may_be = !PyBool_Check(value.ptr()) && PyIndex_Check(value.ptr());
  const auto index =
      py::reinterpret_steal<py::object>(may_be ? PyNumber_Index(value.ptr()) : nullptr);
  if (!index) {
    if (may_be) {
      const py::error_already_set error;  // of an array unfit as an index
      if (!error.matches(PyExc_TypeError)) throw error;
    }
    throw ArgumentError(format("{} is a number of bytes, got {}", what, type_name(value)));
  }
  int overflow = 0;
  const long long bytes = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow > 0) {
    throw ArgumentRangeError(format("{} of {} bytes: at most 2^63 - 1", what, short_repr(index)));
  }
  if (overflow < 0 || bytes < 0) {
    throw InvalidArgument(format("{} of {} bytes: it must be at least 0", what, short_repr(index)));
  }
  return static_cast<std::size_t>(bytes);
}

void bind_resources(py::module_& m) {
  define_base(m);
  define_plain<DeviceResource>(m, "DeviceResource");
  define_plain<AsyncResource>(m, "AsyncResource");
  define_plain<ManagedResource>(m, "ManagedResource");
  define_plain<PinnedResource>(m, "PinnedResource");
  define_adaptors(m);
  define_defaults(m);
}

}  // namespace kernwright::python
