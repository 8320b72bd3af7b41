// The resource of new arrays in one thread.
#pragma once

#include "memory/memory_resource.h"

#include <memory>

namespace kernwright {

/// While it lives, default_resource() of the resource's device is `resource` in this thread; null
/// changes nothing. Scopes of a thread end in the reverse order of their beginning.
class ResourceScope {
 public:
  explicit ResourceScope(std::shared_ptr<MemoryResource> resource) noexcept;
  ~ResourceScope();
  ResourceScope(const ResourceScope&) = delete;
  ResourceScope& operator=(const ResourceScope&) = delete;

  const std::shared_ptr<MemoryResource>& resource() const noexcept { return resource_; }
  const ResourceScope* outer() const noexcept { return outer_; }

 private:
  const std::shared_ptr<MemoryResource> resource_;
  const ResourceScope* const outer_;
};

}  // namespace kernwright
