// Pages of texts that come back from outside: restored, found again, and left alone by failures.
#include "engine/sequence_pages.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace kernwright;
using engine::SequencePages;

namespace {

using Numbers = std::vector<std::int32_t>;

SequencePages pages_of(std::int32_t total, bool prefix_cache = true) {
  return SequencePages({.total = total, .page_size = 2, .prefix_cache = prefix_cache});
}

/// Pages that a text needed, in the order of its tokens.
Numbers restored(SequencePages& pages, const Numbers& text, std::int32_t known) {
  Numbers written;
  pages.restore(text, [&](std::int32_t first, std::span<const std::int32_t> some) {
    CHECK(first == known);
    written.assign(some.begin(), some.end());
  });
  return written;
}

}  // namespace

TEST_CASE("sequence pages: a restored text is found, and written only where it is unknown") {
  SequencePages pages = pages_of(6);
  const Numbers text = {1, 2, 3, 4, 5};
  const Numbers first = restored(pages, text, 0);
  CHECK(first.size() == 2);
  CHECK(pages.cached(text) == first);
  CHECK(pages.cached(Numbers{1, 2, 9, 9}) == Numbers{first[0]});
  CHECK(restored(pages, text, 0).empty());
  const Numbers more = restored(pages, Numbers{1, 2, 3, 4, 5, 6, 7, 8}, 2);
  CHECK(more.size() == 2);
  CHECK(pages.cached(Numbers{1, 2, 3, 4, 5, 6}) == Numbers{first[0], first[1], more[0]});
  CHECK(restored(pages, Numbers{7}, 0).empty());
  CHECK(restored(pages, Numbers{}, 0).empty());
  CHECK(pages.pages().used() == 0);
  CHECK(pages.pages().idle() == 4);
}

TEST_CASE("sequence pages: a write that fails leaves nothing") {
  SequencePages pages = pages_of(4);
  const Numbers known = restored(pages, Numbers{1, 2}, 0);
  const auto fail = [](std::int32_t, std::span<const std::int32_t>) {
    throw std::runtime_error("no copy");
  };
  CHECK_THROWS_AS(pages.restore(Numbers{1, 2, 3, 4}, fail), std::runtime_error);
  CHECK(pages.cached(Numbers{1, 2, 3, 4}) == known);
  CHECK(pages.pages().free() == 3);
  CHECK(pages.pages().used() == 0);
}

TEST_CASE("sequence pages: a restored text takes the place of others, but not of its beginning") {
  SequencePages pages = pages_of(3);
  const Numbers begin = restored(pages, Numbers{1, 2}, 0);
  restored(pages, Numbers{7, 8, 9, 9}, 0);
  CHECK(restored(pages, Numbers{1, 2, 3, 4, 5, 6}, 1).size() == 2);
  CHECK(pages.cached(Numbers{7, 8}).empty());
  CHECK(pages.cached(Numbers{1, 2}) == begin);
  CHECK_THROWS_AS(pages.restore(Numbers{1, 2, 3, 4, 5, 6, 7, 8}, {}), InvalidArgument);
  CHECK_THROWS_AS(pages.restore(Numbers{4, 2, 3, 4, 5, 6, 7, 8}, {}), InvalidArgument);
  CHECK(pages.cached(Numbers{1, 2, 3, 4, 5, 6}).size() == 3);
  CHECK(pages.pages().used() == 0);
}

TEST_CASE("sequence pages: nothing is restored without a prefix cache") {
  SequencePages pages = pages_of(3, false);
  CHECK_THROWS_AS(pages.restore(Numbers{1, 2}, {}), InvalidArgument);
  CHECK(pages.pages().free() == 3);
}
