// The rules of the record: objects that must be alive, contexts of calls.
#include "driver/driver_record.h"

#include "base/format.h"

namespace kernwright {

namespace {

using Kind = DriverObject::Kind;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::module:
      return "module";
    case Kind::function:
      return "function";
    case Kind::stream:
      return "stream";
    case Kind::event:
      return "event";
    case Kind::memory:
      return "memory";
    case Kind::stream_memory:
      return "stream-ordered memory";
    case Kind::host_memory:
      return "host memory";
    case Kind::registration:
      return "registered host memory";
    case Kind::pool:
      return "memory pool";
    case Kind::graph:
      return "graph";
    case Kind::graph_exec:
      return "executable graph";
    case Kind::array:
      return "CUDA array";
    case Kind::texture:
      return "texture object";
    case Kind::surface:
      return "surface object";
    case Kind::green_context:
      return "green context";
  }
  return "object";
}

std::string context_text(CUcontext context) {
  return format("context {:#x}", reinterpret_cast<std::uintptr_t>(context));
}

/// Whether the driver wants the context of the object to be current when it is destroyed. Host
/// memory and pools belong to no context, stream-ordered frees go by the context of the stream.
bool bound_to_context(Kind kind) {
  return kind == Kind::module || kind == Kind::stream || kind == Kind::event ||
         kind == Kind::memory || kind == Kind::array || kind == Kind::texture ||
         kind == Kind::surface;
}

/// Whether RecordingDriver calls use() for each argument of this kind.
bool is_checked_on_use(Kind kind) {
  return kind == Kind::module || kind == Kind::stream || kind == Kind::event ||
         kind == Kind::graph_exec || kind == Kind::array || kind == Kind::green_context;
}

}  // namespace

std::string DriverObject::to_string() const {
  return format("{} {:#x} (made by {} on {})", kind_name(kind), handle, made_by,
                context_text(context));
}

void DriverRecord::add(const DriverObject& object) {
  const std::lock_guard lock(mutex_);
  const Key key(object.kind, object.handle);
  if (const auto [it, fresh] = live_.try_emplace(key, object); !fresh) {
    problems_.push_back(
        format("{} gave out {} while it was alive", object.made_by, it->second.to_string()));
    it->second = object;
  }
  dead_.erase(key);
}

void DriverRecord::add_function(CUfunction function, CUmodule module) {
  const std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<std::uintptr_t>(function);
  function_modules_[handle] = reinterpret_cast<std::uintptr_t>(module);
  dead_.erase(Key(Kind::function, handle));
}

void DriverRecord::retain(CUcontext context, CUdevice device) {
  const std::lock_guard lock(mutex_);
  Primary& primary = primaries_[device];
  primary.context = context;
  ++primary.count;
}

void DriverRecord::release(CUdevice device, const char* by) {
  const std::lock_guard lock(mutex_);
  Primary& primary = primaries_[device];
  if (primary.count == 0) {
    problems_.push_back(format("{} on device {}, whose context was not retained", by, device));
    return;
  }
  if (--primary.count > 0) return;
  for (const auto& [key, object] : live_) {
    if (object.context != primary.context || !bound_to_context(object.kind)) continue;
    problems_.push_back(
        format("{} on device {} took away the context of {}", by, device, object.to_string()));
  }
}

void DriverRecord::reset(CUdevice device) {
  const std::lock_guard lock(mutex_);
  const CUcontext context = primaries_[device].context;
  for (auto it = live_.begin(); it != live_.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    if (it->first.first == Kind::module) remove_functions(it->first.second);
    dead_.insert(it->first);
    it = live_.erase(it);
  }
}

/// The record under which memory is kept: each way of freeing takes both ways of allocating.
std::optional<DriverRecord::Key> DriverRecord::find(Kind kind, std::uint64_t handle) const {
  if (const Key key(kind, handle); live_.contains(key)) return key;
  if (kind != Kind::memory && kind != Kind::stream_memory) return std::nullopt;
  const Kind other = kind == Kind::memory ? Kind::stream_memory : Kind::memory;
  if (const Key key(other, handle); live_.contains(key)) return key;
  return std::nullopt;
}

void DriverRecord::remove_functions(std::uint64_t module) {
  for (auto it = function_modules_.begin(); it != function_modules_.end();) {
    if (it->second == module) {
      dead_.insert(Key(Kind::function, it->first));
      it = function_modules_.erase(it);
    } else {
      ++it;
    }
  }
}

std::optional<DriverObject> DriverRecord::take(Kind kind, std::uint64_t handle, CUcontext current,
                                               const char* by) {
  if (handle == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const std::optional<Key> key = find(kind, handle);
  if (!key) {
    const bool twice = dead_.contains(Key(kind, handle));
    // use() has reported the second destruction of these already.
    const bool reported = twice && is_checked_on_use(kind);
    if (!reported) {
      problems_.push_back(format("{} of {} {:#x}, which was {}", by, kind_name(kind), handle,
                                 twice ? "destroyed before" : "never made"));
    }
    return std::nullopt;
  }
  DriverObject object = live_.at(*key);
  if (bound_to_context(object.kind) && object.context != current) {
    problems_.push_back(
        format("{} of {} while {} was current", by, object.to_string(), context_text(current)));
  }
  live_.erase(*key);
  dead_.insert(*key);
  if (object.kind == Kind::module) remove_functions(handle);
  return object;
}

void DriverRecord::use(Kind kind, std::uint64_t handle, const char* by) {
  const std::lock_guard lock(mutex_);
  if (!dead_.contains(Key(kind, handle))) return;
  problems_.push_back(
      format("{} used {} {:#x} after it was destroyed", by, kind_name(kind), handle));
}

std::size_t DriverRecord::live() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = live_.size();
  for (const auto& [device, primary] : primaries_) count += primary.count > 0 ? 1 : 0;
  return count;
}

std::vector<std::string> DriverRecord::check() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines = problems_;
  for (const auto& [key, object] : live_) lines.push_back("never destroyed: " + object.to_string());
  for (const auto& [device, primary] : primaries_) {
    if (primary.count == 0) continue;
    lines.push_back(format("never released: primary {} of device {}, retained {} times",
                           context_text(primary.context), device, primary.count));
  }
  return lines;
}

void DriverRecord::clear() {
  const std::lock_guard lock(mutex_);
  live_.clear();
  dead_.clear();
  function_modules_.clear();
  primaries_.clear();
  problems_.clear();
}

}  // namespace kernwright
