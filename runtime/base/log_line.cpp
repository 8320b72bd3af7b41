// A message of the log as a line of stderr.
#include "base/log_line.h"

#include "base/format.h"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace kernwright {

void write_log_line(LogLevel level, std::string_view message) {
  const std::string line = format("kernwright: {}: {}\n", log_level_name(level), message);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace kernwright
