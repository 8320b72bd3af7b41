// The entry's file format, held fast by golden files.
#include "jit/cache/cache_entry.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/cache/cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

CacheEntry golden_entry() {
  CacheEntry entry;
  entry.key_fields = "schema:1:2\nsource:6:kernel\n";
  entry.included.files = {{"/include/a.h", sha256("int a;")}};
  entry.included.needs_cuda_headers = true;
  entry.header_folders = {{"/cuda/include", 0x0123456789abcdef}};
  entry.source = "golden.cu";
  entry.object_bytes = small_code("golden code").serialize();
  return entry;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("cache entry: what is encoded is decoded") {
  const CacheEntry entry = golden_entry();
  const CacheEntry read = decode_entry(encode_entry(entry));
  CHECK(read.key_fields == entry.key_fields);
  CHECK(same_headers(read.included, entry.included));
  CHECK(read.header_folders == entry.header_folders);
  CHECK(read.source == entry.source);
  CHECK(read.object_bytes == entry.object_bytes);
  CHECK_THROWS_AS(decode_entry({}), Error);
}

TEST_CASE("cache entry: the format is that of the golden file") {
  // When this fails, files of released versions can no longer be read as they were meant: raise
  // kCacheEntryVersion (or the version inside ObjectCode) and store the new file beside this one.
  const std::string path = std::string(TEST_GOLDEN_FOLDER) + "/cache_entry_object_v2.bin";
  REQUIRE(kCacheEntryVersion == 1);
  const std::string encoded = text_of(encode_entry(golden_entry()));
  if (std::getenv("KERNWRIGHT_WRITE_GOLDEN") != nullptr) test::write_text(path, encoded);
  const std::string golden = test::read_text(path);
  CHECK(golden == encoded);
  const CacheEntry read = decode_entry(std::as_bytes(std::span(golden)));
  CHECK(read.source == "golden.cu");
  CHECK(ObjectCode::deserialize(read.object_bytes).code == "golden code");
}

TEST_CASE("cache entry: header folders are told apart by their release") {
  const test::TemporaryDirectory folder;
  const auto stamp = [&] { return header_folders_of({folder.path().string()})[0].stamp; };
  const auto empty = stamp();
  test::write_text(folder / "cuda/std/version", "1");
  const auto one = stamp();
  CHECK(one != empty);
  CHECK(stamp() == one);
  test::write_text(folder / "cuda/std/version", "22");
  CHECK(stamp() != one);
}
