// Remembering streams, marking where their work stands, and dropping objects behind that.
#include "core/launch/launch_trail.h"

#include "core/device.h"
#include "core/graph/capture.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernwright {
namespace {

/// The per-thread stream is another one in each thread, and borrowed ones may be gone later.
bool may_vanish(const Stream& stream) noexcept {
  return stream.handle() != nullptr && !stream.is_owned();
}

bool is_same(const Stream& a, const Stream& b) noexcept {
  return may_vanish(a) ? a.handle() == b.handle() && may_vanish(b) : a.id() == b.id();
}

bool all_done(const std::vector<Event>& events) {
  return std::all_of(events.begin(), events.end(), [](const Event& e) { return e.done(); });
}

}  // namespace

void LaunchTrail::note(const Stream& stream) {
  const std::thread::id here = std::this_thread::get_id();
  const bool per_thread = stream.handle() == kStreamPerThread;
  User* entry = nullptr;
  for (User& user : users_) {
    if (is_same(user.stream, stream) && (!per_thread || user.thread == here)) entry = &user;
  }
  if (entry == nullptr) entry = &users_.emplace_back(User{stream, here, std::nullopt});
  if (!may_vanish(stream)) return;
  if (!entry->last_use) entry->last_use.emplace(stream.device(), false);
  entry->last_use->record(stream);
}

void LaunchTrail::order(const Stream& stream) const {
  for (const User& user : users_) {
    if (user.last_use) {
      stream.wait(*user.last_use);
    } else if (!is_same(user.stream, stream) && find_capture(user.stream) == nullptr) {
      stream.wait(user.stream.record());
    }
  }
}

/// Events behind all launches; nothing while one of the streams is being captured, as such a stream
/// records events instead of reaching them.
std::optional<std::vector<Event>> LaunchTrail::mark(const std::vector<User>& users) {
  std::vector<Event> events;
  for (const User& user : users) {
    if (user.last_use) {
      events.push_back(*user.last_use);
      continue;
    }
    if (find_capture(user.stream) != nullptr) return std::nullopt;
    events.emplace_back(user.stream.device(), false).record(user.stream);
  }
  return events;
}

void LaunchTrail::hold(KeptObjects objects, KeptObjects& released) {
  if (users_.empty()) {
    std::move(objects.begin(), objects.end(), std::back_inserter(released));
  } else if (!objects.empty()) {
    held_.push_back({users_, mark(users_), std::move(objects)});
  }
}

void LaunchTrail::take_released(KeptObjects& released) {
  std::erase_if(held_, [&](Held& held) {
    if (!held.events) held.events = mark(held.users);
    if (!held.events || !all_done(*held.events)) return false;
    std::move(held.objects.begin(), held.objects.end(), std::back_inserter(released));
    return true;
  });
}

void LaunchTrail::release(Held held) {
  if (!held.events) held.events = mark(held.users);
  if (held.events) {
    for (const Event& event : *held.events) event.synchronize();
    return;
  }
  for (const User& user : held.users) {
    const std::shared_ptr<Capture> capture = find_capture(user.stream);
    if (capture == nullptr) continue;
    auto left = std::make_shared<Held>(std::move(held));
    capture->at_end([left] { release(std::move(*left)); });
    return;
  }
}

void LaunchTrail::wait_and_release() {
  for (Held& held : std::exchange(held_, {})) release(std::move(held));
}

}  // namespace kernwright
