// Fields of messages come back as they were, and impossible ones are refused.
#include "worker/message_fields.h"

#include <doctest/doctest.h>

#include "base/errors.h"

using namespace kernwright;

TEST_CASE("message fields: a number beyond an enumeration's last is refused") {
  ByteWriter out;
  for (const std::uint8_t value : {0, 1, 2}) out.u8(value);
  ByteReader in(out.data(), "a message");
  enum class Pair { one, other };
  CHECK(read_enum(in, Pair::other, "pair") == Pair::one);
  CHECK(read_enum(in, Pair::other, "pair") == Pair::other);
  CHECK_THROWS_WITH_AS(read_enum(in, Pair::other, "pair"), doctest::Contains("impossible pair 2"),
                       Error);
}
