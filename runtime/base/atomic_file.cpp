// Temporary file, fsync, rename.
#include "base/atomic_file.h"

#include "base/fault_point.h"
#include "base/format.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>

namespace kernwright {
namespace {

constexpr std::string_view kTemporaryPrefix = ".tmp-";
constexpr std::time_t kStaleSeconds = 3600;

/// Names the process, so that others can tell whether its writer still lives.
std::string temporary_name() {
  // NOTE: std::random_device would ask for a newer C library than anything else here.
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
    random =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return format("{}{}-{:016x}", kTemporaryPrefix, ::getpid(), random);
}

/// The process that a temporary file's name tells, or 0.
pid_t parse_writer(std::string_view name) noexcept {
  name.remove_prefix(kTemporaryPrefix.size());
  pid_t process = 0;
  const auto [stop, status] = std::from_chars(name.data(), name.data() + name.size(), process);
  return status == std::errc() && *stop == '-' ? process : 0;
}

int write_and_sync(FileSystem& system, FileHandle& file, std::span<const std::byte> bytes) {
  KW_FAULT_POINT("atomic_file.opened");
  if (const int result = write_fully(system, file.get(), bytes.data(), bytes.size())) return result;
  KW_FAULT_POINT("atomic_file.written");
  int synced = system.sync(file.get());
  while (synced == -EINTR) synced = system.sync(file.get());
  if (synced < 0) return synced;
  KW_FAULT_POINT("atomic_file.synced");
  // Some file systems report a failed write no earlier than here. After EINTR the file is closed.
  const int closed = file.reset();
  return closed == -EINTR ? 0 : closed;
}

}  // namespace

int write_atomically(FileSystem& system, int directory, const std::string& name,
                     std::span<const std::byte> bytes, mode_t mode) {
  const std::string temporary = temporary_name();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  int opened = system.open(directory, temporary.c_str(), kFlags, mode);
  while (opened == -EINTR) opened = system.open(directory, temporary.c_str(), kFlags, mode);
  if (opened < 0) return opened;
  FileHandle file(system, opened);
  int result = write_and_sync(system, file, bytes);
  if (result == 0) result = system.rename(directory, temporary.c_str(), name.c_str());
  if (result < 0) {
    system.unlink(directory, temporary.c_str());
    return result;
  }
  KW_FAULT_POINT("atomic_file.renamed");
  return 0;
}

bool is_temporary_name(std::string_view name) noexcept {
  return name.starts_with(kTemporaryPrefix);
}

int remove_stale_temporaries(FileSystem& system, int directory) {
  std::vector<std::string> names;
  if (system.list(directory, names) < 0) return 0;
  const std::time_t now = ::time(nullptr);
  int removed = 0;
  for (const std::string& name : names) {
    if (!is_temporary_name(name)) continue;
    struct stat status {};
    if (system.read_status(directory, name.c_str(), status) < 0) continue;
    const pid_t writer = parse_writer(name);
    const bool is_gone = writer > 0 && ::kill(writer, 0) != 0 && errno == ESRCH;
    const bool is_old = status.st_mtime + kStaleSeconds < now;
    if ((is_gone || is_old) && system.unlink(directory, name.c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace kernwright
