// SHA-256 against the vectors of FIPS 180-4 and of NIST's examples.
#include "base/sha256.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

struct Vector {
  std::string text;
  const char* digest;
};

const Vector kVectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnop"
     "qrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {std::string(1'000'000, 'a'),
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

}  // namespace

TEST_CASE("sha256: the published vectors, with and without the CPU's instructions") {
  for (const Vector& vector : kVectors) {
    CHECK(sha256(vector.text).to_hex() == vector.digest);
    CHECK(Sha256::portable().update(vector.text).digest().to_hex() == vector.digest);
  }
}

TEST_CASE("sha256: pieces of any size give the digest of the whole") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string_view whole = std::string_view(text).substr(0, size);
    const Sha256Digest expected = Sha256::portable().update(whole).digest();
    CHECK(sha256(whole) == expected);
    Sha256 pieces;
    for (std::size_t at = 0; at < size; at += 13) pieces.update(whole.substr(at, 13));
    CHECK(pieces.digest() == expected);
  }
}

TEST_CASE("sha256: a digest does not end the sequence") {
  Sha256 hasher;
  hasher.update("a");
  CHECK(hasher.digest() == sha256("a"));
  CHECK(hasher.update("bc").digest() == sha256("abc"));
}
