// Loops around read() and write().
#include "base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace kernwright {
namespace {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) {
    do {
      file_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (file_ < 0 && errno == EINTR);
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const noexcept { return file_; }
  /// Whether everything that was written has been accepted.
  bool close() noexcept {
    const bool good = file_ >= 0 && ::close(file_) == 0;
    file_ = -1;
    return good;
  }

 private:
  int file_ = -1;
};

/// read() that a signal does not end.
ssize_t read_some(const Descriptor& file, char* buffer, std::size_t size) {
  ssize_t count;
  do {
    count = ::read(file.get(), buffer, size);
  } while (count < 0 && errno == EINTR);
  return count;
}

bool write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_whole_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) return std::nullopt;
  std::string bytes;
  std::size_t filled = 0;
  for (;;) {
    // Sizes that the system tells are not relied on: files of /proc have none.
    if (bytes.size() == filled) bytes.resize(bytes.size() * 2 + 4096);
    const ssize_t count = read_some(file, bytes.data() + filled, bytes.size() - filled);
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

bool write_whole_file(const std::string& path, std::string_view bytes) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  return file.get() >= 0 && write_all(file, bytes) && file.close();
}

}  // namespace kernwright
