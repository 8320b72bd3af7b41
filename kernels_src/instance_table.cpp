// Growing the table of a family's kernels.
#include "kernels_src/instance_table.h"

#include "core/kernel.h"
#include "jit/program.h"

namespace kernwright::kernels {
namespace {

constexpr int kFirstPower = 4;

}  // namespace

InstanceTable::Slots::Slots(std::size_t power)
    : count(std::size_t{1} << power),
      shift(64 - static_cast<int>(power)),
      list(std::make_unique<Slot[]>(count)) {}

void InstanceTable::Slots::put(std::uint64_t key, const LazyKernel& kernel) noexcept {
  std::size_t at = first(key);
  while (list[at].kernel.load(std::memory_order_relaxed) != nullptr) at = (at + 1) & (count - 1);
  list[at].key = key;
  list[at].kernel.store(&kernel, std::memory_order_release);
}

InstanceTable::InstanceTable() {
  tables_.push_back(std::make_unique<Slots>(kFirstPower));
  slots_.store(tables_.back().get(), std::memory_order_release);
}

InstanceTable::~InstanceTable() = default;

const LazyKernel& InstanceTable::add(std::uint64_t key, std::unique_ptr<LazyKernel> made) {
  const std::lock_guard lock(mutex_);
  if (const LazyKernel* const known = find(key)) return *known;
  Slots* slots = tables_.back().get();
  kernels_.push_back(std::move(made));
  if (kernels_.size() * 2 >= slots->count) {
    auto larger = std::make_unique<Slots>(static_cast<std::size_t>(64 - slots->shift + 1));
    for (std::size_t i = 0; i < slots->count; ++i) {
      const LazyKernel* const kernel = slots->list[i].kernel.load(std::memory_order_relaxed);
      if (kernel != nullptr) larger->put(slots->list[i].key, *kernel);
    }
    slots = larger.get();
    tables_.push_back(std::move(larger));
    slots->put(key, *kernels_.back());
    slots_.store(slots, std::memory_order_release);
  } else {
    slots->put(key, *kernels_.back());
  }
  return *kernels_.back();
}

}  // namespace kernwright::kernels
