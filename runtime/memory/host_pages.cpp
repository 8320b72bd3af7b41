// madvise(MADV_POPULATE_WRITE) over parts of the memory.
#include "memory/host_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace kernwright {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
constexpr std::size_t kLeastBytes = std::size_t{16} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMostThreads = 4;

void populate(std::uintptr_t from, std::uintptr_t to) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the parts are cut at page boundaries.
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, kPopulateWrite);
}

}  // namespace

void populate_pages(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLeastBytes) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (start + page - 1) / page * page;
  const std::uintptr_t end = (start + bytes) / page * page;
  const std::size_t threads =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const std::uintptr_t part = ((end - begin) / threads / kHugePage + 1) * kHugePage;
  std::vector<std::thread> helpers;
  std::uintptr_t next = begin;
  try {
    helpers.reserve(threads);
    for (; helpers.size() + 1 < threads && next + part < end; next += part) {
      helpers.emplace_back(populate, next, next + part);
    }
  } catch (const std::exception&) {
    // Without memory or threads this one does the rest.
  }
  populate(next, end);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace kernwright
