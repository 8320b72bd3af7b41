// Sizes in words: the unit, the decimal, whole numbers.
#include "base/byte_text.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("byte text: whole numbers of a unit have no decimal, others one") {
  CHECK(describe_bytes(0) == "0 B");
  CHECK(describe_bytes(1) == "1 B");
  CHECK(describe_bytes(1023) == "1023 B");
  CHECK(describe_bytes(1024) == "1 KiB");
  CHECK(describe_bytes(1025) == "1.0 KiB");
  CHECK(describe_bytes(1536 << 10) == "1.5 MiB");
  CHECK(describe_bytes(std::uint64_t{64} << 30) == "64 GiB");
}

TEST_CASE("byte text: what rounds to 1024 has the next unit, up to the last one") {
  CHECK(describe_bytes(1048575) == "1.0 MiB");
  CHECK(describe_bytes(1048524) == "1023.9 KiB");
  CHECK(describe_bytes(std::uint64_t{1} << 60) == "1 EiB");
  CHECK(describe_bytes(~std::uint64_t{0}) == "16.0 EiB");
}
