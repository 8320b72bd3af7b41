// The thread's allocation site.
#include "memory/allocation_site.h"

namespace kernwright {
namespace {

constinit thread_local LaunchSite current;

}  // namespace

const LaunchSite& current_allocation_site() noexcept { return current; }

AllocationSiteScope::AllocationSiteScope(const LaunchSite& site) noexcept
    : set_(current.resolve == nullptr && site.resolve != nullptr) {
  if (set_) current = site;
}

AllocationSiteScope::~AllocationSiteScope() {
  if (set_) current = {};
}

}  // namespace kernwright
