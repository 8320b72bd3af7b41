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

TEST_CASE("hash: keys of few integers differ, also by the order of these") {
  std::set<std::size_t> hashes;
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) hashes.insert(mixed(mix(mix(0, a), b << 32)));
  }
  CHECK(hashes.size() > 9'990);
}

TEST_CASE("hash: SplitMix64 gives the numbers of its authors, from any place on") {
  // Printed by the authors' splitmix64.c from seed 1234567.
  const std::uint64_t published[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u};
  std::uint64_t state = 1234567;
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(splitmix(state) == published[i]);
    CHECK(splitmix_at(1234567, i) == published[i]);
  }
}
