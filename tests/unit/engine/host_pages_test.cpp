// Pages on their way to the host and back, on the device.
#include "engine/host_pages.h"

#include "base/errors.h"
#include "memory/transfer.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace kernwright;
using engine::HostPages;
using kernels::PageMove;
using test::bytes_of;
using test::device;
using test::patterned;

TEST_CASE("host pages: pages of all arrays come back as they were, to other pages") {
  const Stream stream = Stream::create(device());
  // Keys and scales, as caches of 8 bits have them; more pages than a launch moves.
  const Array keys = patterned({150, 4, 2, 8}, ScalarType::int8);
  const Array scales = patterned({150, 4, 2}, ScalarType::float32);
  const auto before_keys = bytes_of(keys), before_scales = bytes_of(scales);
  constexpr std::size_t kKeys = 64, kScales = 32;  // bytes of a page
  HostPages host({keys, scales}, 200 * (kKeys + kScales) + 95, stream);
  REQUIRE(host.slots() == 200);
  CHECK(host.is_idle());

  std::vector<PageMove> moves;
  for (std::int32_t i = 0; i < 150; i += 2) moves.push_back({i, 199 - i});
  host.save(moves);
  // The pages are written anew by later work of the steps.
  host.load({}, true);
  fill(device(), keys.address(), 0, 4, keys.nbytes() / 4, stream);
  fill(device(), scales.address(), 0, 4, scales.nbytes() / 4, stream);
  std::map<std::int32_t, std::int32_t> origins;
  for (PageMove& move : moves) {
    origins[149 - move.page] = move.page;
    move.page = 149 - move.page;
  }
  host.load(moves, false);
  stream.synchronize();
  CHECK(host.is_idle());
  const auto after_keys = bytes_of(keys), after_scales = bytes_of(scales);
  const auto same = [](const auto& after, const auto& before, std::size_t bytes, std::int32_t page,
                       std::int32_t origin) {
    for (std::size_t i = 0; i < bytes; ++i) {
      const unsigned char wanted =
          origin < 0 ? 0 : before[static_cast<std::size_t>(origin) * bytes + i];
      if (after[static_cast<std::size_t>(page) * bytes + i] != wanted) return false;
    }
    return true;
  };
  for (std::int32_t page = 0; page < 150; ++page) {
    CAPTURE(page);
    const std::int32_t origin = origins.contains(page) ? origins[page] : -1;
    CHECK(same(after_keys, before_keys, kKeys, page, origin));
    CHECK(same(after_scales, before_scales, kScales, page, origin));
  }
}

TEST_CASE("host pages: too little memory and caches without pages are refused") {
  const Stream stream = Stream::create(device());
  const Array keys = patterned({3, 4, 2, 8}, ScalarType::int8);
  CHECK_THROWS_WITH_AS(HostPages({keys}, 63, stream),
                       "63 bytes of the host hold no page of the caches, which takes 64",
                       InvalidArgument);
  CHECK_THROWS_AS(HostPages({}, 64, stream), InvalidArgument);
  CHECK_THROWS_AS(HostPages({patterned({3, 5}, ScalarType::int8)}, 640, stream), InvalidArgument);
  CHECK_THROWS_AS(HostPages({keys.slice(2, 0, 1, 1)}, 640, stream), InvalidArgument);
}
