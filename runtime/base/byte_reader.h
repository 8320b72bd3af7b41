// Bounded reading and writing of little-endian fields, for file formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Reads fields from a span of bytes owned by others. Each read is checked: past the end it throws
/// Error with `what`, the offset and the number of missing bytes, and reads nothing.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string what);

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  std::int32_t i32();
  std::int64_t i64();
  double f64();

  /// A view of the next `count` bytes, into the bytes given.
  std::span<const std::byte> bytes(std::uint64_t count);
  /// A 32-bit length and that many characters; longer than `limit` is an error.
  std::string text(std::uint32_t limit);
  /// A 32-bit length and that many bytes, as a view.
  std::span<const std::byte> blob();
  /// The exact bytes of `magic`, else Error.
  void expect(std::string_view magic);
  /// Error unless everything was read.
  void expect_end() const;

  std::size_t offset() const noexcept { return offset_; }
  std::size_t remaining() const noexcept { return bytes_.size() - offset_; }

 private:
  template <typename Unsigned>
  Unsigned little_endian();

  std::span<const std::byte> bytes_;
  std::string what_;
  std::size_t offset_ = 0;
};

/// Appends fields that ByteReader reads back. Throws Error for a text or blob of 4 GiB and more.
class ByteWriter {
 public:
  void u8(std::uint8_t value);
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void i32(std::int32_t value);
  void i64(std::int64_t value);
  void f64(double value);
  void bytes(std::span<const std::byte> value);  ///< as they are, without a length
  void text(std::string_view value);             ///< with a 32-bit length
  void blob(std::span<const std::byte> value);   ///< with a 32-bit length

  std::span<const std::byte> data() const noexcept { return data_; }
  std::vector<std::byte> take() noexcept { return std::move(data_); }

 private:
  template <typename Unsigned>
  void little_endian(Unsigned value);
  void length(std::size_t size);

  std::vector<std::byte> data_;
};

}  // namespace kernwright
