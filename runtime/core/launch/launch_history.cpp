// The ring of last launches: writers never wait, readers check that a slot held still.
#include "core/launch/launch_history.h"

#include "base/format.h"
#include "base/hash.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kTagBytes = sizeof(KernelTag::words);

/// Texts that do not begin on their file's first line, by kernel and file. Never destroyed.
struct FirstLines {
  static constexpr std::size_t kMost = 65536;  ///< 5 MB; then all is forgotten
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> lines;
};

FirstLines& first_lines() {
  static auto* const instance = new FirstLines;
  return *instance;
}

}  // namespace

KernelTag::KernelTag(std::string_view name, std::string_view lowered,
                     const SourceOrigin& origin) noexcept
    : lowered_hash(hash(lowered)),
      file_hash(hash(origin.file)),
      first_line(static_cast<std::uint64_t>(origin.first_line)) {
  char text[kTagBytes] = {};
  const bool fits = name.size() < kTagBytes;
  std::memcpy(text, name.data(), fits ? name.size() : kTagBytes - 4);
  if (!fits) std::memcpy(text + kTagBytes - 4, "...", 3);
  std::memcpy(words.data(), text, kTagBytes);
  if (origin.first_line <= 1) return;
  try {
    FirstLines& known = first_lines();
    const std::lock_guard lock(known.mutex);
    if (known.lines.size() >= FirstLines::kMost) known.lines.clear();
    known.lines[{lowered_hash, file_hash}] = first_line;
  } catch (const std::exception&) {
    // Without memory a finding names the line of the text alone.
  }
}

std::uint64_t KernelTag::find_first_line(std::string_view lowered, std::string_view file) {
  FirstLines& known = first_lines();
  const std::lock_guard lock(known.mutex);
  const auto found = known.lines.find({hash(lowered), hash(file)});
  return found == known.lines.end() ? 1 : found->second;
}

std::string KernelTag::name() const {
  char text[kTagBytes + 1] = {};
  std::memcpy(text, words.data(), kTagBytes);
  return text;
}

std::uint64_t KernelTag::hash(std::string_view lowered) noexcept { return hash_text(lowered).low; }

void LaunchHistory::note(const KernelTag& kernel, const LaunchSite& site) noexcept {
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[ticket % kCapacity];
  // A slot in the hands of another writer, or taken by a newer launch, is left alone: one launch
  // less in a message is better than a mixture of two.
  std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  if (sequence % 2 != 0 || sequence > 2 * ticket) return;
  if (!slot.sequence.compare_exchange_strong(sequence, 2 * ticket + 1, std::memory_order_relaxed)) {
    return;
  }
  // Release stores, with acquire loads in read(): whoever sees one of them also sees the odd
  // number.
  for (std::size_t i = 0; i < KernelTag::kWords; ++i) {
    slot.words[i].store(kernel.words[i], std::memory_order_release);
  }
  slot.lowered_hash.store(kernel.lowered_hash, std::memory_order_release);
  slot.file_hash.store(kernel.file_hash, std::memory_order_release);
  slot.first_line.store(kernel.first_line, std::memory_order_release);
  slot.origin.store(site.origin, std::memory_order_release);
  slot.position.store(site.position, std::memory_order_release);
  slot.resolve.store(site.resolve, std::memory_order_release);
  slot.sequence.store(2 * ticket + 2, std::memory_order_release);
}

void LaunchHistory::forget_until(std::uint64_t position) noexcept {
  std::uint64_t first = first_.load(std::memory_order_relaxed);
  while (first < position &&
         !first_.compare_exchange_weak(first, position, std::memory_order_relaxed)) {}
}

bool LaunchHistory::read(std::uint64_t ticket, Entry& entry) const noexcept {
  const Slot& slot = slots_[ticket % kCapacity];
  if (slot.sequence.load(std::memory_order_acquire) != 2 * ticket + 2) return false;
  for (std::size_t i = 0; i < KernelTag::kWords; ++i) {
    entry.kernel.words[i] = slot.words[i].load(std::memory_order_acquire);
  }
  entry.kernel.lowered_hash = slot.lowered_hash.load(std::memory_order_acquire);
  entry.kernel.file_hash = slot.file_hash.load(std::memory_order_acquire);
  entry.kernel.first_line = slot.first_line.load(std::memory_order_acquire);
  entry.site.origin = slot.origin.load(std::memory_order_acquire);
  entry.site.position = slot.position.load(std::memory_order_acquire);
  entry.site.resolve = slot.resolve.load(std::memory_order_acquire);
  return slot.sequence.load(std::memory_order_relaxed) == 2 * ticket + 2;
}

std::vector<LaunchHistory::Entry> LaunchHistory::entries() const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t oldest = end > kCapacity ? end - kCapacity : 0;
  const std::uint64_t begin = std::max(oldest, first_.load(std::memory_order_relaxed));
  std::vector<Entry> found;
  for (std::uint64_t ticket = end; ticket > begin; --ticket) {
    Entry entry;
    if (read(ticket - 1, entry)) found.push_back(entry);
  }
  return found;
}

std::string LaunchHistory::describe() const {
  std::string text;
  const std::vector<Entry> found = entries();
  for (std::size_t i = 0; i < found.size();) {
    std::size_t next = i + 1;
    while (next < found.size() && found[next].kernel.words == found[i].kernel.words &&
           found[next].site.origin == found[i].site.origin &&
           found[next].site.position == found[i].site.position) {
      ++next;
    }
    if (!text.empty()) text += ", ";
    text += found[i].kernel.name();
    if (next - i > 1) text += format(" x {}", next - i);
    const std::string place = found[i].site.to_string();
    if (!place.empty()) text += format(" ({})", place);
    i = next;
  }
  return text;
}

}  // namespace kernwright
