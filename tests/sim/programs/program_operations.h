// The instructions of random programs: their PTX, and what they compute by the host's arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kernwright::sim {

using Word32 = std::uint32_t;
using Word64 = std::uint64_t;

/// SplitMix64: the same numbers everywhere.
class RandomWords {
 public:
  explicit RandomWords(Word64 seed) : state_(seed) {}
  Word64 next() {
    Word64 z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(next() % limit); }

 private:
  Word64 state_;
};

/// An instruction, or a few in braces. In the text $d $a $b $c stand for registers of 32 bits, $D
/// $A $B $C for those of 64, $i for a number of 32 bits and $j for one of 8, which `compute` gets
/// instead of c. Where all of them have 32 bits, `narrow` computes, else `wide`.
struct Operation {
  const char* text;
  Word32 (*narrow)(Word32 a, Word32 b, Word32 c) = nullptr;
  Word64 (*wide)(Word64 a, Word64 b, Word64 c) = nullptr;

  /// Whether a and b must be two registers: of one, ptxas makes min and max of floating point a
  /// copy, which keeps a NaN as it is.
  bool is_extremum() const;
  bool has(char letter) const;  ///< whether the text has $letter
};

/// 32-bit integers, floating point of 16 and 32 bits, conversions between these, selections.
std::span<const Operation> narrow_operations();
/// Whatever has a register of 64 bits.
std::span<const Operation> wide_operations();

/// `number` counts through both lists.
const Operation& operation(unsigned number);
unsigned operation_count();

/// An instruction of a whole warp: `compute` fills d[lane] for the lanes of `members`. In the text
/// $m stands for the members, $s for an operand c of shfl.
struct WarpOperation {
  const char* text;
  void (*compute)(const Word32* a, const Word32* b, Word32 number, Word32 members, Word32* d);
  bool needs_all = false;  ///< reads of lanes that must be there: 32 members
};
std::span<const WarpOperation> warp_operations();

/// An atomic instruction whose order does not matter: $a (or $A) goes to the slot [$p]. `apply`
/// gives its new value.
struct AtomicOperation {
  const char* text;
  Word64 (*apply)(Word64 slot, Word64 a);
  bool wide = false;
};
std::span<const AtomicOperation> atomic_operations();

/// What a branch or a loop asks about a and b: sets predicate q.
struct Condition {
  const char* text;
  bool (*holds)(Word32 a, Word32 b);
};
std::span<const Condition> conditions();

}  // namespace kernwright::sim
