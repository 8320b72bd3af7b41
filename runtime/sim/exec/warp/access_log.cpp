// Bitmaps of touched bytes, a page at a time.
#include "sim/exec/warp/access_log.h"

#include <algorithm>

namespace kernwright::sim {

AccessLog::Page& AccessLog::page(std::uint64_t number) {
  if (number == last_number_) return *last_;
  std::unique_ptr<Page>& slot = pages_[number];
  if (slot == nullptr) slot = std::make_unique<Page>();
  last_number_ = number;
  last_ = slot.get();
  return *slot;
}

void AccessLog::note(std::uint64_t address, std::uint64_t bytes, AccessKind kind) {
  constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageShift;
  const auto row = static_cast<std::size_t>(kind);
  while (bytes != 0) {
    std::array<std::uint64_t, kWords>& bits = page(address >> kPageShift)[row];
    std::uint64_t at = address % kPageBytes;
    std::uint64_t rest = std::min(bytes, kPageBytes - at);
    bytes -= rest;
    address += rest;
    while (rest != 0) {
      const std::uint64_t shift = at % kWordBits;
      const std::uint64_t count = std::min(rest, kWordBits - shift);
      const std::uint64_t ones =
          count == kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      bits[at / kWordBits] |= ones << shift;
      at += count;
      rest -= count;
    }
  }
}

void AccessLog::merge(const AccessLog& other) {
  for (const auto& [number, from] : other.pages_) {
    Page& to = page(number);
    for (std::size_t row = 0; row < to.size(); ++row) {
      for (std::size_t word = 0; word < kWords; ++word) to[row][word] |= (*from)[row][word];
    }
  }
}

void AccessLog::drop(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = address >> kPageShift;
  const std::uint64_t last = (address + bytes - 1) >> kPageShift;
  for (std::uint64_t number = first; number <= last; ++number) pages_.erase(number);
  last_number_ = ~std::uint64_t{0};
}

std::vector<Touched> AccessLog::ranges() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : pages_) numbers.push_back(entry.first);
  std::sort(numbers.begin(), numbers.end());
  std::vector<Touched> result;
  for (const AccessKind kind : {AccessKind::read, AccessKind::write, AccessKind::atomic}) {
    const auto row = static_cast<std::size_t>(kind);
    const std::size_t first = result.size();
    const auto add = [&](std::uint64_t begin, std::uint64_t end) {
      if (result.size() > first && result.back().end == begin) {
        result.back().end = end;
      } else {
        result.push_back({begin, end, kind});
      }
    };
    for (const std::uint64_t number : numbers) {
      const auto& bits = (*pages_.find(number)->second)[row];
      for (std::size_t word = 0; word < kWords; ++word) {
        const std::uint64_t begin = (number << kPageShift) + word * kWordBits;
        std::uint64_t left = bits[word];
        if (left == ~std::uint64_t{0}) {
          add(begin, begin + kWordBits);
          continue;
        }
        for (std::uint64_t at = begin; left != 0; left >>= 1, ++at) {
          if ((left & 1) != 0) add(at, at + 1);
        }
      }
    }
  }
  return result;
}

}  // namespace kernwright::sim
