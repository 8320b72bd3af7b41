// A stack of free pages, a list of idle ones, and a count for each page.
#include "engine/pages.h"

#include "base/errors.h"
#include "base/format.h"

#include <stdexcept>

namespace kernwright::engine {

Pages::Pages(std::int32_t total) {
  if (total < 1) throw InvalidArgument(format("a cache has at least one page, not {}", total));
  owners_.assign(static_cast<std::size_t>(total), 0);
  cached_.assign(owners_.size(), false);
  followed_ = cached_;
  links_.resize(owners_.size() + 1);
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
  followed_[static_cast<std::size_t>(page)] = false;
  return page;
}

void Pages::retain(std::int32_t page) {
  if (owners(page) == 0) throw std::logic_error(format("page {} is free: it has no owner", page));
  const auto index = static_cast<std::size_t>(page);
  if (++owners_[index] == 2 && cached_[index]) remove_idle(page);
}

void Pages::release(std::int32_t page) {
  if (owners(page) == 0) throw std::logic_error(format("page {} is freed twice", page));
  const auto index = static_cast<std::size_t>(page);
  if (owners_[index] == 1 && cached_[index])
    throw std::logic_error(format("page {} has no owner but the prefix cache", page));
  --owners_[index];
  if (owners_[index] == 1 && cached_[index]) add_idle(page);
  if (owners_[index] == 0) free_.push_back(page);
}

void Pages::retain_cached(std::int32_t page) {
  const std::int32_t before = owners(page);
  const auto index = static_cast<std::size_t>(page);
  if (before == 0 || cached_[index])
    throw std::logic_error(format("page {} is {}", page, before == 0 ? "free" : "cached already"));
  ++owners_[index];
  cached_[index] = true;
}

void Pages::release_cached(std::int32_t page) {
  const std::int32_t before = owners(page);
  const auto index = static_cast<std::size_t>(page);
  if (!cached_[index]) throw std::logic_error(format("page {} is not in the prefix cache", page));
  if (before == 1) remove_idle(page);
  cached_[index] = false;
  release(page);
}

Pages::Link& Pages::link(std::int32_t page) noexcept {
  return page < 0 ? links_.back() : links_[static_cast<std::size_t>(page)];
}

void Pages::add_idle(std::int32_t page) noexcept {
  ++idle_;
  const std::int32_t newest = links_.back().previous;
  link(page) = {newest, -1};
  link(newest).next = page;
  links_.back().previous = page;
}

void Pages::remove_idle(std::int32_t page) noexcept {
  --idle_;
  const Link gone = link(page);
  link(gone.previous).next = gone.next;
  link(gone.next).previous = gone.previous;
}

}  // namespace kernwright::engine
