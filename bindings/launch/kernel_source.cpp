// A table of source texts by the code that was made of them.
#include "bindings/launch/kernel_source.h"

#include <deque>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace kernwright::python {
namespace {

/// Never destroyed.
struct KnownSources {
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<const KernelSource>> by_code;
  std::deque<std::uint64_t> order;  ///< oldest first
  std::size_t bytes = 0;
};

KnownSources& known_sources() {
  static auto* const instance = new KnownSources;
  return *instance;
}

std::size_t bytes_of(const KernelSource& source) {
  std::size_t bytes = source.source.text.size();
  for (const auto& [name, text] : source.headers) bytes += name.size() + text.size();
  return bytes;
}

}  // namespace

const std::string* KernelSource::text_of(const std::string& file) const {
  if (file == source.name) return &source.text;
  for (const auto& header : headers) {
    if (file == header.first) return &header.second;
    // The compiler puts the working directory of that time before the name.
    if (!file.ends_with("/" + header.first)) continue;
    std::error_code failure;
    const std::filesystem::path folder = std::filesystem::current_path(failure);
    const bool here = !failure && file == (folder / header.first).string();
    if (here || !std::filesystem::exists(file, failure)) return &header.second;
  }
  return nullptr;
}

void remember_source(const Program& program, std::uint64_t code) {
  auto made = std::make_shared<const KernelSource>(
      KernelSource{program.source(), program.options().headers});
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  const auto [place, is_new] = known.by_code.try_emplace(code, made);
  if (!is_new) {
    // The same text may stand on another line by now.
    known.bytes -= bytes_of(*std::exchange(place->second, made));
  } else {
    known.order.push_back(code);
  }
  known.bytes += bytes_of(*made);
  while (known.order.size() > 1 &&
         (known.order.size() > KnownSources::kMost || known.bytes > KnownSources::kMostBytes)) {
    const auto oldest = known.by_code.find(known.order.front());
    known.bytes -= bytes_of(*oldest->second);
    known.by_code.erase(oldest);
    known.order.pop_front();
  }
}

std::shared_ptr<const KernelSource> source_of_code(std::uint64_t code) {
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_code.find(code);
  return found == known.by_code.end() ? nullptr : found->second;
}

}  // namespace kernwright::python
