// Fields written are read back, and nothing is ever read past the end.
#include "base/byte_reader.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <limits>

using namespace kernwright;

namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

ByteWriter sample() {
  ByteWriter writer;
  writer.u8(0xab);
  writer.u16(0x1234);
  writer.u32(0xdeadbeef);
  writer.u64(0x0123456789abcdef);
  writer.i32(-5);
  writer.i64(std::numeric_limits<std::int64_t>::min());
  writer.f64(-0.1);
  writer.text("name");
  writer.blob(raw({1, 2, 3}));
  writer.bytes(raw({9}));
  return writer;
}

/// Whether every field has its value.
bool read_sample(ByteReader& reader) {
  bool same = true;
  same &= reader.u8() == 0xab;
  same &= reader.u16() == 0x1234;
  same &= reader.u32() == 0xdeadbeef;
  same &= reader.u64() == 0x0123456789abcdef;
  same &= reader.i32() == -5;
  same &= reader.i64() == std::numeric_limits<std::int64_t>::min();
  same &= reader.f64() == -0.1;
  same &= reader.text(100) == "name";
  same &= reader.blob().size() == 3;
  same &= reader.bytes(1)[0] == std::byte{9};
  reader.expect_end();
  return same;
}

}  // namespace

TEST_CASE("byte reader: what was written is read back") {
  const ByteWriter writer = sample();
  ByteReader reader(writer.data(), "sample");
  CHECK(read_sample(reader));
  CHECK(reader.remaining() == 0);
}

TEST_CASE("byte writer: fields are little-endian") {
  ByteWriter writer;
  writer.u32(0x01020304);
  writer.text("A");
  CHECK(writer.take() == raw({4, 3, 2, 1, 1, 0, 0, 0, 'A'}));
}

TEST_CASE("byte reader: every truncation is an error, never a read past the end") {
  const ByteWriter writer = sample();
  for (std::size_t size = 0; size < writer.data().size(); ++size) {
    // A copy of its own: a sanitizer sees a read past its end.
    const std::vector<std::byte> cut(writer.data().begin(),
                                     writer.data().begin() + static_cast<std::ptrdiff_t>(size));
    ByteReader reader(cut, "sample");
    CAPTURE(size);
    CHECK_THROWS_AS(read_sample(reader), Error);
  }
}

TEST_CASE("byte reader: a failed read moves nothing and names the place") {
  const auto bytes = raw({7, 0, 0, 0, 'x'});
  ByteReader reader(bytes, "cache entry");
  CHECK_THROWS_AS(reader.text(100), Error);
  CHECK(reader.offset() == 0);
  CHECK_THROWS_AS(reader.blob(), Error);
  CHECK(reader.offset() == 0);
  CHECK(reader.u32() == 7);
  try {
    reader.u16();
    FAIL("read past the end");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "cache entry: truncated at offset 4: 2 bytes wanted, 1 left");
  }
  CHECK(reader.offset() == 4);
  CHECK_THROWS_AS(reader.expect_end(), Error);
}

TEST_CASE("byte reader: a length that lies cannot make it allocate or wrap around") {
  const auto bytes = raw({0xff, 0xff, 0xff, 0xff, 1, 2});
  ByteReader reader(bytes, "lie");
  CHECK_THROWS_AS(reader.text(10), Error);
  CHECK_THROWS_AS(reader.text(0xffffffff), Error);
  CHECK_THROWS_AS(reader.blob(), Error);
  CHECK_THROWS_AS(reader.bytes(std::numeric_limits<std::uint64_t>::max()), Error);
  CHECK(reader.bytes(0).empty());
  CHECK(reader.offset() == 0);
}

TEST_CASE("byte reader: the magic must match") {
  const auto bytes = raw({'K', 'W', '0', '1'});
  ByteReader reader(bytes, "file");
  CHECK_THROWS_AS(reader.expect("KW02"), Error);
  CHECK(reader.offset() == 0);
  reader.expect("");
  reader.expect("KW01");
  reader.expect_end();
  CHECK_THROWS_AS(reader.expect("K"), Error);
}
