// SHA-256 (FIPS 180-4), the hash that nobody can forge: for keys and checksums of caches and packs,
// whose code runs unseen. Everything else uses base/hash.h, which is several times as fast.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kernwright {

class ByteReader;

struct Sha256Digest {
  std::array<std::byte, 32> bytes{};

  /// 64 lower-case hexadecimal digits.
  std::string to_hex() const;
  auto operator<=>(const Sha256Digest&) const = default;
};

/// Hashes a sequence of pieces, with the CPU's SHA instructions where it has them. A value; not
/// thread-safe.
class Sha256 {
 public:
  Sha256() noexcept;

  Sha256& update(std::span<const std::byte> bytes) noexcept;
  Sha256& update(std::string_view text) noexcept;
  /// The digest of everything so far; more may follow.
  Sha256Digest digest() const noexcept;

  /// Whether this CPU has SHA instructions that this build uses.
  static bool is_accelerated() noexcept;
  /// For tests: the same without the CPU's SHA instructions.
  static Sha256 portable() noexcept;

 private:
  using Compress = void (*)(std::uint32_t* state, const std::byte* blocks, std::size_t count);

  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, 64> block_{};
  std::uint64_t length_ = 0;
  Compress compress_;
};

/// The digest that `in` holds next. Throws as ByteReader does when it is cut short.
Sha256Digest read_digest(ByteReader& in);

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept;
Sha256Digest sha256(std::string_view text) noexcept;

}  // namespace kernwright
