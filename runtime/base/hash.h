// XXH3 of 128 bits, the fast hash: for tables in memory, and to notice accidental changes and
// damage (journals, saved object code, unpacked headers). Two texts with one hash can be made on
// purpose. Keys of caches and packs therefore use base/sha256.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kernwright {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// 32 lower-case hexadecimal digits, the high half first.
  std::string to_hex() const;
  auto operator<=>(const Hash128&) const = default;
};

Hash128 hash_bytes(std::span<const std::byte> bytes) noexcept;
Hash128 hash_text(std::string_view text) noexcept;

/// Hashes a sequence of pieces. update() joins bytes seamlessly; field() also hashes the length, so
/// that ("ab", "c") and ("a", "bc") differ. Not thread-safe; movable.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& update(std::span<const std::byte> bytes) noexcept;
  Hasher& update(std::string_view text) noexcept;
  Hasher& field(std::string_view text) noexcept;
  Hasher& field(std::uint64_t value) noexcept;

  /// The hash of everything so far; more may follow.
  Hash128 digest() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
