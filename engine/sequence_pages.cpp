// Numbers of pages for tokens, and the ways between sequences, free pages and the prefix cache.
#include "engine/sequence_pages.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <span>

namespace kernwright::engine {

SequencePages::SequencePages(const PageOptions& options)
    : options_(options), pages_(options.total), prefixes_(pages_, options.page_size) {}

std::int32_t SequencePages::pages_for(std::int32_t tokens) const noexcept {
  return (tokens + options_.page_size - 1) / options_.page_size;
}

std::int32_t SequencePages::missing(const StepPlan& plan) const noexcept {
  std::int32_t wanted = 0;
  for (const StepPart& part : plan.parts)
    wanted += std::max(0, pages_for(part.sequence->computed + part.count) -
                              static_cast<std::int32_t>(part.sequence->pages.size()));
  return wanted - available();
}

std::int32_t SequencePages::shared_pages(std::int32_t length) const noexcept {
  std::int32_t pages = (length - 1) / options_.page_size;
  if (options_.part == 0) return pages;
  while (pages * options_.page_size % options_.part != 0) --pages;
  return pages;
}

void SequencePages::find(Sequence& sequence) {
  if (!options_.prefix_cache) return;
  const auto most = static_cast<std::size_t>(shared_pages(sequence.length));
  prefixes_.find(sequence.tokens, most, sequence.pages, sequence.salt());
  keep_whole_parts(sequence);
}

void SequencePages::load(Sequence& sequence) {
  if (!prefixes_.has_host()) return;
  const auto most = static_cast<std::size_t>(shared_pages(sequence.length));
  prefixes_.load(sequence.tokens, most, sequence.pages, sequence.salt());
  keep_whole_parts(sequence);
}

/// Counts tokens of pages that were found as computed, in whole parts of a prompt.
void SequencePages::keep_whole_parts(Sequence& sequence) {
  const auto found = static_cast<std::int32_t>(sequence.pages.size());
  const std::int32_t whole = shared_pages(found * options_.page_size + 1);
  release_last(sequence.pages, static_cast<std::size_t>(whole));
  sequence.computed = whole * options_.page_size;
}

void SequencePages::share(const Sequence& leader, Sequence& follower) {
  const std::int32_t count = shared_pages(leader.prompt_length());
  follower.pages.assign(leader.pages.begin(), leader.pages.begin() + count);
  for (const std::int32_t page : follower.pages) pages_.retain(page);
  follower.computed = count * options_.page_size;
}

void SequencePages::give(Sequence& sequence, std::int32_t tokens) {
  const auto wanted = static_cast<std::size_t>(pages_for(tokens));
  if (sequence.pages.size() >= wanted) return;
  prefixes_.free_up(static_cast<std::int32_t>(wanted - sequence.pages.size()));
  while (sequence.pages.size() < wanted) sequence.pages.push_back(pages_.take());
}

/// Full pages of the first `tokens` that others may share.
std::size_t SequencePages::kept_pages(const Sequence& sequence, std::size_t tokens) const noexcept {
  std::size_t full = tokens / static_cast<std::size_t>(options_.page_size);
  // Generated tokens of a deterministic engine were not computed as those of a prompt are.
  if (options_.part != 0)
    full = std::min(full, static_cast<std::size_t>(shared_pages(sequence.prompt_length() + 1)));
  return std::min(full, sequence.pages.size());
}

void SequencePages::keep_prompt(Sequence& sequence) {
  if (!options_.prefix_cache || sequence.prompt_cached) return;
  const auto length = static_cast<std::size_t>(sequence.prompt_length());
  const std::size_t known = std::min(length, static_cast<std::size_t>(sequence.computed));
  prefixes_.add(sequence.source->prompt,
                std::span(sequence.pages).first(kept_pages(sequence, known)), sequence.salt());
  const auto size = static_cast<std::size_t>(options_.page_size);
  sequence.prompt_cached = known / size == length / size;
}

void SequencePages::keep_text(const Sequence& sequence) {
  if (!options_.prefix_cache) return;
  const auto known = std::min(sequence.tokens.size(), static_cast<std::size_t>(sequence.computed));
  prefixes_.add(sequence.tokens, std::span(sequence.pages).first(kept_pages(sequence, known)),
                sequence.salt());
}

std::vector<std::int32_t> SequencePages::cached(std::span<const std::int32_t> tokens,
                                                std::uint64_t salt) {
  std::vector<std::int32_t> found;
  prefixes_.find(tokens, tokens.size(), found, salt);
  std::vector<std::int32_t> held = found;
  release_last(held, 0);
  return found;
}

void SequencePages::restore(std::span<const std::int32_t> tokens, const Fill& fill,
                            std::uint64_t salt) {
  if (!options_.prefix_cache)
    throw InvalidArgument("pages of a text are restored into a prefix cache, and there is none");
  struct Held {
    SequencePages& owner;
    std::vector<std::int32_t> numbers{};
    ~Held() { owner.release_last(numbers, 0); }
  };
  const std::size_t full = tokens.size() / static_cast<std::size_t>(options_.page_size);
  Held held{*this};
  prefixes_.find(tokens, full, held.numbers, salt);
  const std::size_t known = held.numbers.size();
  if (known == full) return;
  const auto missing = static_cast<std::int32_t>(full - known);
  if (missing > available())
    throw InvalidArgument(
        format("a text of {} tokens needs {} pages of {} tokens more, and {} of {} are available",
               tokens.size(), missing, options_.page_size, available(), pages_.total()));
  prefixes_.free_up(missing);
  while (held.numbers.size() < full) held.numbers.push_back(pages_.take());
  fill(static_cast<std::int32_t>(known), std::span(held.numbers).subspan(known));
  prefixes_.add(tokens, held.numbers, salt);
}

/// Releases pages of a text from its end on: the cache keeps the beginning for a longer time.
void SequencePages::release_last(std::vector<std::int32_t>& pages, std::size_t left) {
  while (pages.size() > left) {
    pages_.release(pages.back());
    pages.pop_back();
  }
}

bool SequencePages::release_found(Sequence& sequence, std::int32_t wanted) {
  if (sequence.pages.empty()) return false;
  const std::int32_t enough = available() + wanted;
  while (!sequence.pages.empty() && available() < enough)
    release_last(sequence.pages, sequence.pages.size() - 1);
  sequence.computed = static_cast<std::int32_t>(sequence.pages.size()) * options_.page_size;
  return true;
}

std::int32_t SequencePages::followed(const Sequence& sequence) const {
  const auto end = std::ranges::find_if_not(
      sequence.pages, [&](std::int32_t page) { return pages_.is_followed(page); });
  const auto whole = static_cast<std::int32_t>(end - sequence.pages.begin());
  return std::min(whole * options_.page_size, sequence.computed);
}

void SequencePages::keep_followed(const Sequence& sequence) {
  const auto certain = static_cast<std::int32_t>(sequence.tokens.size()) - 1;
  const std::int32_t full = std::min(sequence.followed, certain) / options_.page_size;
  for (std::int32_t i = 0; i < full; ++i)
    pages_.set_followed(sequence.pages[static_cast<std::size_t>(i)]);
}

void SequencePages::release(Sequence& sequence) {
  keep_followed(sequence);
  release_last(sequence.pages, 0);
  sequence.sent_pages = 0;
  sequence.computed = sequence.followed = 0;
  sequence.prompt_cached = false;
}

}  // namespace kernwright::engine
