// Opens without waiting, looks at what was opened, and reads no more than the limit.
#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/format.h"

namespace kernwright {
namespace {

/// A system call that a signal does not end.
template <typename Call>
auto repeated(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Opened {
 public:
  explicit Opened(const std::string& path)
      : file_(repeated(
            [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); })) {}
  ~Opened() {
    if (file_ >= 0) ::close(file_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int get() const noexcept { return file_; }

 private:
  int file_;
};

const char* file_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

std::string failure() {
  const int code = errno;
  if (code == ENOENT) return "it does not exist";
  if (code == ENXIO) return "it is a socket, no regular file";  // which cannot be opened
  return format("it cannot be read: {}", std::strerror(code));
}

RegularFile too_large(std::uint64_t bytes, std::uint64_t limit) {
  return {{}, format("it has {} bytes; the limit is {}", bytes, limit), true};
}

/// Why the opened file is none that can be read; empty where it is.
std::string objection(const Opened& file, struct stat& status) {
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return failure();
  if (S_ISREG(status.st_mode)) return {};
  return format("it is {}, no regular file", file_kind(status.st_mode));
}

ssize_t read_some(const Opened& file, char* buffer, std::size_t size) {
  return repeated([&] { return ::read(file.get(), buffer, size); });
}

constexpr std::size_t kNumbersHead = 256;

bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

}  // namespace

RegularFile read_regular_file(const std::string& path, std::uint64_t limit) {
  const Opened file(path);
  struct stat status {};
  RegularFile result;
  result.reason = objection(file, status);
  if (!result.reason.empty()) return result;
  const auto told = static_cast<std::uint64_t>(status.st_size);
  if (told > limit) return too_large(told, limit);
  std::string& bytes = result.bytes;
  std::size_t filled = 0;
  for (;;) {
    // A file may grow meanwhile, and those of /proc tell no size: one byte more shows the end.
    if (bytes.size() == filled) bytes.resize(std::max<std::size_t>(told + 1, 2 * filled + 4096));
    const ssize_t count = read_some(file, bytes.data() + filled, bytes.size() - filled);
    if (count < 0) return {{}, failure(), false};
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
    if (filled > limit) return too_large(filled, limit);
  }
  bytes.resize(filled);
  return result;
}

RegularFile read_file_head(const std::string& path, std::size_t count) {
  const Opened file(path);
  struct stat status {};
  RegularFile result;
  result.reason = objection(file, status);
  if (!result.reason.empty()) return result;
  result.bytes.resize(count);
  const ssize_t got = read_some(file, result.bytes.data(), count);
  if (got < 0) return {{}, failure(), false};
  result.bytes.resize(static_cast<std::size_t>(got));
  return result;
}

// NOTE: without streams of the C++ library, whose locales are 4 % of a linked extension.
std::size_t read_numbers(const std::string& path, std::span<std::uint64_t> numbers) {
  const std::string head = read_file_head(path, kNumbersHead).bytes;
  const char* next = head.data();
  const char* const end = next + head.size();
  for (std::size_t count = 0; count < numbers.size(); ++count) {
    while (next != end && is_space(*next)) ++next;
    std::uint64_t number = 0;
    const auto [last, error] = std::from_chars(next, end, number);
    if (error != std::errc() || (last != end && !is_space(*last))) return count;
    numbers[count] = number;
    next = last;
  }
  return numbers.size();
}

}  // namespace kernwright
