// Matrices in shared memory as wgmma sees them: where the chunks of 16 bytes lie.
#pragma once

#include <cstdint>

namespace kernwright::sim {

// Op::flags of wgmma, beside those of matrix_multiply.h.
// Transposed: the rows (of B the columns) follow each other, not k.
inline constexpr std::uint32_t kTransposeA = 1 << 7;
inline constexpr std::uint32_t kTransposeB = 1 << 8;
inline constexpr std::uint32_t kNegate = 1 << 9;       ///< the products
inline constexpr std::uint32_t kRegisters = 1 << 10;   ///< A is in registers
inline constexpr std::uint32_t kHalves = 1 << 11;      ///< D is of f16
inline constexpr std::uint32_t kSparse = 1 << 12;      ///< A is, and B twice as deep
inline constexpr std::uint32_t kSecondPair = 1 << 13;  ///< sparsity selector 1

/// Modifiers::selector of wgmma.mma_async.sp.
inline constexpr std::uint8_t kSparseA = 1;

inline constexpr int kMatrixChunk = 16;

/// The depth of B, in chunks of k; A has two.
[[gnu::always_inline]] inline unsigned b_depth(std::uint32_t flags) {
  return (flags & kSparse) != 0 ? 4 : 2;
}

/// A matrix in shared memory by its descriptor, of which bits between the fields mean nothing (so
/// on an H200), seen as blocks of 8 rows by 16 bytes of k. "Rows" are columns for B. Functions are
/// always inlined: op handlers are built several times.
class SharedMatrix {
 public:
  [[gnu::always_inline]] SharedMatrix(std::uint64_t descriptor, bool transposed)
      : start_((descriptor & 0x3fff) << 4),
        leading_((descriptor >> 16 & 0x3fff) << 4),
        stride_((descriptor >> 32 & 0x3fff) << 4),
        base_(descriptor >> 49 & 7),
        transposed_(transposed) {
    const auto mode = static_cast<unsigned>(descriptor >> 62);
    chunks_ = mode == 0 ? 1 : 16u >> mode;  // 1: 128 bytes, 2: 64, 3: 32
  }

  /// The place of chunk `i` of the block: row i of it, or step i of k if rows follow each other
  /// (halves only).
  [[gnu::always_inline]] std::uint64_t chunk(unsigned row_block, unsigned k_block,
                                             unsigned i) const {
    std::uint64_t at = start_ + i * chunks_ * kMatrixChunk;
    if (!transposed_) {
      at += row_block * stride_ + k_block * (chunks_ == 1 ? leading_ : kMatrixChunk);
    } else if (chunks_ == 1) {
      at += row_block * stride_ + k_block * leading_;
    } else {
      at += row_block % chunks_ * kMatrixChunk + row_block / chunks_ * leading_ + k_block * stride_;
    }
    return at ^ ((((at >> 7) - base_) & (chunks_ - 1)) << 4);
  }
  [[gnu::always_inline]] bool transposed() const { return transposed_; }
  [[gnu::always_inline]] std::uint64_t leading() const { return leading_; }

 private:
  std::uint64_t start_, leading_, stride_, base_;
  std::uint64_t chunks_;  ///< that a row of the swizzle's pattern has
  bool transposed_;
};

}  // namespace kernwright::sim
