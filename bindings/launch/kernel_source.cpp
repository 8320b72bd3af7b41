// A table of source texts by their code.
#include "bindings/launch/kernel_source.h"

#include "base/errors.h"
#include "base/regular_file.h"
#include "jit/compile/ptx_source_lines.h"
#include "jit/source/cuda_headers.h"
#include "jit/source/include_closure.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

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

std::size_t source_bytes(const KernelSource& source) {
  std::size_t bytes = source.source.text.size();
  for (const auto& [name, text] : source.options.headers) bytes += name.size() + text.size();
  return bytes;
}

/// Empty where there is none.
std::string canonical(const std::string& file) {
  std::error_code failure;
  return std::filesystem::canonical(file, failure).string();
}

/// The oldest first.
std::vector<std::shared_ptr<const KernelSource>> all_sources() {
  std::vector<std::shared_ptr<const KernelSource>> result;
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  for (const std::uint64_t code : known.order) result.push_back(known.by_code.at(code));
  return result;
}

}  // namespace

const std::string* KernelSource::find_text(const std::string& file) const {
  if (file == source.name) return &source.text;
  for (const auto& header : options.headers) {
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

bool KernelSource::reads(const std::string& path) const {
  std::call_once(looked_, [&] {
    if (source.directory.empty() && options.include_dirs.empty()) return;
    try {
      for (const IncludedFile& file : include_closure(source, options).files) {
        files_.insert(canonical(file.path));
      }
    } catch (const Error&) {
      // Files have changed since the compile: none is shown.
    }
  });
  return !path.empty() && files_.contains(path);
}

void remember_source(const Program& program, std::uint64_t code) {
  auto made = std::make_shared<const KernelSource>(program);
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  const auto [place, is_new] = known.by_code.try_emplace(code, made);
  if (!is_new) {
    // The same text may stand on another line by now.
    known.bytes -= source_bytes(*std::exchange(place->second, made));
  } else {
    known.order.push_back(code);
  }
  known.bytes += source_bytes(*made);
  while (known.order.size() > 1 &&
         (known.order.size() > KnownSources::kMost || known.bytes > KnownSources::kMostBytes)) {
    const auto oldest = known.by_code.find(known.order.front());
    known.bytes -= source_bytes(*oldest->second);
    known.by_code.erase(oldest);
    known.order.pop_front();
  }
}

std::shared_ptr<const KernelSource> find_source(std::uint64_t code) {
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_code.find(code);
  return found == known.by_code.end() ? nullptr : found->second;
}

std::optional<std::string> shown_text(const std::string& file, int first_line) {
  const auto sources = all_sources();
  std::optional<std::string> found;
  for (const auto& source : sources) {
    const int begins = file == source->source.name ? source->source.first_line : 1;
    const std::string* const text = begins == first_line ? source->find_text(file) : nullptr;
    if (text == nullptr) continue;
    // Texts without a file share their name: chooses one.
    if (found && *found != *text && file.starts_with('<')) return std::nullopt;
    found = *text;
  }
  if (found || first_line != 1) return found;
  const std::string path = canonical(file);
  const bool is_read = std::any_of(sources.begin(), sources.end(),
                                   [&](const auto& source) { return source->reads(path); });
  if (path.empty() || !(is_read || is_cuda_header(path))) return std::nullopt;
  RegularFile read = read_regular_file(path, kMaxSourceBytes);
  if (!read.reason.empty()) return std::nullopt;
  return std::move(read.bytes);
}

std::string shown_line(std::uint64_t code, const std::string& file, int line) {
  constexpr std::size_t kMostBytes = 120;
  const auto source = find_source(code);
  const std::string* const known = source ? source->find_text(file) : nullptr;
  const std::optional<std::string> read = known == nullptr ? shown_text(file, 1) : std::nullopt;
  if (known == nullptr && !read) return {};
  std::string text(line_of_text(known != nullptr ? *known : *read, line));
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto unit = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (unit < 0x20 || unit == 0x7f) text[i] = text[i] == '\t' ? ' ' : '?';
    if (unit == 0xc2 && next >= 0x80 && next < 0xa0) text.replace(i, 2, "?");  // of C1
  }
  if (text.size() <= kMostBytes) return text;
  std::size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within UTF-8
  return text.substr(0, end) + "...";
}

}  // namespace kernwright::python
