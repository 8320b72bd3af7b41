// A stack of free pages, and a count for each page.
#include "engine/pages.h"

#include "base/errors.h"
#include "base/format.h"

#include <stdexcept>

namespace kernwright::engine {

Pages::Pages(std::int32_t total) {
  if (total < 1) throw InvalidArgument(format("a cache has at least one page, not {}", total));
  owners_.assign(static_cast<std::size_t>(total), 0);
  free_.reserve(owners_.size());
  for (std::int32_t page = total; page-- > 0;) free_.push_back(page);
}

std::int32_t Pages::owners(std::int32_t page) const {
  if (page < 0 || page >= total())
    throw std::logic_error(format("page {} of a cache of {} pages", page, total()));
  return owners_[static_cast<std::size_t>(page)];
}

std::int32_t Pages::take() {
  if (free_.empty()) throw std::logic_error(format("all {} pages of a cache are used", total()));
  const std::int32_t page = free_.back();
  free_.pop_back();
  owners_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void Pages::retain(std::int32_t page) {
  if (owners(page) == 0) throw std::logic_error(format("page {} is free: it has no owner", page));
  ++owners_[static_cast<std::size_t>(page)];
}

void Pages::release(std::int32_t page) {
  if (owners(page) == 0) throw std::logic_error(format("page {} is freed twice", page));
  if (--owners_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

}  // namespace kernwright::engine
