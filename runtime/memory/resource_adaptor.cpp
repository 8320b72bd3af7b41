// Passing on.
#include "memory/resource_adaptor.h"

#include "base/errors.h"

#include <utility>

namespace kernwright {

ResourceAdaptor::ResourceAdaptor(std::shared_ptr<MemoryResource> upstream)
    : upstream_(std::move(upstream)) {
  if (upstream_ == nullptr)
    throw InvalidArgument("an adaptor needs a resource to pass calls on to");
}

CUdeviceptr ResourceAdaptor::allocate(std::size_t bytes, const Stream& stream) {
  return upstream_->allocate(bytes, stream);
}

void ResourceAdaptor::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  upstream_->release(address, bytes, stream);
}

void ResourceAdaptor::deallocate(CUdeviceptr address, std::size_t bytes,
                                 const Stream& stream) noexcept {
  upstream_->deallocate(address, bytes, stream);
}

}  // namespace kernwright
