// The program line of an allocation.
#pragma once

#include "core/launch/launch_site.h"

namespace kernwright {

/// The place in the program for this thread's allocations at the moment; unknown by default.
const LaunchSite& current_allocation_site() noexcept;

/// Sets the place of this thread's allocations to `site` while it lives, unless an outer scope did:
/// reports name the outermost caller.
class AllocationSiteScope {
 public:
  explicit AllocationSiteScope(const LaunchSite& site) noexcept;
  ~AllocationSiteScope();
  AllocationSiteScope(const AllocationSiteScope&) = delete;
  AllocationSiteScope& operator=(const AllocationSiteScope&) = delete;

 private:
  bool set_;
};

}  // namespace kernwright
