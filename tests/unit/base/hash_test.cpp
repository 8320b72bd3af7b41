// Known answers of XXH3-128 and the rules of the streaming form.
#include "base/hash.h"

#include <doctest/doctest.h>

#include <set>

using namespace kernwright;

TEST_CASE("hash: known answers") {
  // From the reference implementation's published vectors and command line tool.
  CHECK(hash_text("").to_hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(hash_text("a").to_hex() == "a96faf705af16834e6c632b61e964e1f");
}

TEST_CASE("hash: pieces hash like the whole, at every cut") {
  std::string text;
  for (int i = 0; i < 700; ++i) text.push_back(static_cast<char>('a' + i % 23));
  const Hash128 whole = hash_text(text);
  CHECK(hash_bytes(std::as_bytes(std::span(text))) == whole);
  for (std::size_t cut = 0; cut <= text.size(); cut += 7) {
    Hasher hasher;
    hasher.update(std::string_view(text).substr(0, cut));
    hasher.update(std::string_view(text).substr(cut));
    CHECK(hasher.digest() == whole);
    CHECK(hasher.digest() == whole);
  }
}

TEST_CASE("hash: fields keep their borders") {
  std::set<std::string> seen;
  CHECK(seen.insert(Hasher().field("ab").field("c").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().field("a").field("bc").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().field("abc").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().field("abc").field("").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().field("").field("abc").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().update("abc").digest().to_hex()).second);
  CHECK(seen.insert(Hasher().field(std::uint64_t{3}).digest().to_hex()).second);
}

TEST_CASE("hash: one bit changes about half of the bits") {
  std::string text(64, 'x');
  const Hash128 before = hash_text(text);
  text[20] ^= 1;
  const Hash128 after = hash_text(text);
  const int bits =
      __builtin_popcountll(before.high ^ after.high) + __builtin_popcountll(before.low ^ after.low);
  CHECK(bits > 32);
  CHECK(bits < 96);
}

TEST_CASE("hash: a moved hasher goes on where it was") {
  Hasher first;
  first.update("ab");
  Hasher second(std::move(first));
  CHECK(second.update("c").digest() == hash_text("abc"));
}
