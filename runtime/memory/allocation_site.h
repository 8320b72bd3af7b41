// The program line of an allocation.
#pragma once

#include "core/launch/launch_site.h"

namespace kernwright {

/// The place that this thread's allocations are charged to at the moment; unknown by default.
const LaunchSite& current_allocation_site() noexcept;

/// Charges this thread's allocations to `site` while it lives, unless an outer scope does already:
/// the outermost caller is the one that a reader looks for.
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
