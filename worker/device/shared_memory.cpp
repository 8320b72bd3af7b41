// An anonymous file that cannot shrink: neither side loses pages under its feet.
#include "worker/device/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {

SharedMemory::SharedMemory(FileHandle file, std::uint64_t bytes) : file_(std::move(file)) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (at == MAP_FAILED) {
    throw Error(
        format("{} bytes of shared memory cannot be mapped: {}", bytes, std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(at), bytes};
}

SharedMemory SharedMemory::create(std::uint64_t bytes) {
  FileHandle file(FileSystem::real(),
                  ::memfd_create("kernwright", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw Error(
        format("{} bytes of shared memory cannot be made: {}", bytes, std::strerror(errno)));
  }
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return {std::move(file), bytes};
}

SharedMemory SharedMemory::open(FileHandle file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_size <= 0) {
    throw Error("a descriptor that came with a message is no shared memory");
  }
  return {std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace kernwright
