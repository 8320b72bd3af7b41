// XXH3 of 128 bits, the fast hash: for tables in memory, and to notice accidental changes and
// damage (journals, saved object code, unpacked headers). Two texts with one hash can be made on
// purpose. Keys of caches and packs therefore use base/sha256.h. Beside it are a quick hash of a
// few integers, and SplitMix64.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kernwright {

/// 2^64 divided by the golden ratio: its multiples are spread evenly.
inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;

/// A key's hash so far with its next integer added; mixed() makes the final hash of it. Keys of
/// std::unordered_map only: these values may change from version to version.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  return (hash ^ value) * kGoldenRatio;
}
constexpr std::size_t mixed(std::uint64_t hash) noexcept {
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

/// The next number of SplitMix64 (Steele, Lea, Flood 2014); `state` moves on.
constexpr std::uint64_t splitmix(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += kGoldenRatio);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}
/// Number `index` of the sequence that begins in the state `seed`.
constexpr std::uint64_t splitmix_at(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t state = seed + index * kGoldenRatio;
  return splitmix(state);
}

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
