// The pages of sequences: taken as tokens are computed, found again by their tokens.
#pragma once

#include "engine/pages.h"
#include "engine/prefix.h"
#include "engine/schedule.h"
#include "engine/sequence.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kernwright::engine {

struct PageOptions {
  std::int32_t total = 0;
  std::int32_t page_size = 0;
  bool prefix_cache = false;
  /// Shared pages end at a multiple of so many tokens of a prompt, if it is not 0: a deterministic
  /// engine computes prompts in parts of that size.
  std::int32_t part = 0;
};

/// Not thread-safe.
class SequencePages {
 public:
  /// Throws InvalidArgument for no page.
  explicit SequencePages(const PageOptions& options);

  const Pages& pages() const noexcept { return pages_; }
  const PageOptions& options() const noexcept { return options_; }
  /// Free pages and idle ones: give() can take as many.
  std::int32_t available() const noexcept { return pages_.free() + pages_.idle(); }
  std::int32_t pages_for(std::int32_t tokens) const noexcept;
  /// Pages of a plan beyond the available ones.
  std::int32_t missing(const StepPlan& plan) const noexcept;
  /// Pages at the beginning of a text that others may have computed: full ones, without the last
  /// token.
  std::int32_t shared_pages(std::int32_t length) const noexcept;

  /// Gives a sequence the pages that the prefix cache has of its known tokens. It has no other ones
  /// than those of earlier calls: the search goes on behind these.
  void find(Sequence& sequence);
  /// As find(), with pages that are on the host alone. They are moved to pages of the device: as
  /// many are available.
  void load(Sequence& sequence);
  /// Gives `follower` the first pages of `leader`, as many as both may share.
  void share(const Sequence& leader, Sequence& follower);
  /// Takes pages until so many tokens have place. Throws std::logic_error without available ones.
  void give(Sequence& sequence, std::int32_t tokens);
  /// Keeps full pages of computed tokens for others: of the prompt, step by step, or of all known
  /// tokens.
  void keep_prompt(Sequence& sequence);
  void keep_text(const Sequence& sequence);
  /// Computed tokens of the first pages, as far as a draft model has these.
  std::int32_t followed(const Sequence& sequence) const;
  /// Lets other sequences know the full pages of a draft model, of tokens without a doubt: steps on
  /// their way may reject the last ones.
  void keep_followed(const Sequence& sequence);
  /// Takes all pages back. Nothing of the sequence is computed then.
  void release(Sequence& sequence);
  /// Takes pages of find() back, from the last one on, until so many more are available or it has
  /// none. Whether it had some.
  bool release_found(Sequence& sequence, std::int32_t wanted);
  /// The pages that the prefix cache has of the beginning of a text of this salt. They may go to
  /// others later.
  std::vector<std::int32_t> cached(std::span<const std::int32_t> tokens, std::uint64_t salt = 0);
  /// Adds the full pages of a text to the prefix cache: `fill` writes keys and values of the tokens
  /// from `first * page_size` on into `pages`, and is not called where there are none. What it
  /// throws leaves the prefix cache as it was. Throws InvalidArgument for too few available pages.
  using Fill = std::function<void(std::int32_t first, std::span<const std::int32_t> pages)>;
  void restore(std::span<const std::int32_t> tokens, const Fill& fill, std::uint64_t salt = 0);
  /// Forgets pages without another owner.
  void clear_cache() noexcept { prefixes_.clear(); }
  PrefixCache& prefixes() noexcept { return prefixes_; }
  const PrefixCache& prefixes() const noexcept { return prefixes_; }

 private:
  std::size_t kept_pages(const Sequence& sequence, std::size_t tokens) const noexcept;
  void keep_whole_parts(Sequence& sequence);
  void release_last(std::vector<std::int32_t>& pages, std::size_t left);

  PageOptions options_;
  Pages pages_;
  PrefixCache prefixes_;
};

}  // namespace kernwright::engine
