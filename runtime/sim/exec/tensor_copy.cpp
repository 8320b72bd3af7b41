// Tensor copies: a box of a tensor in global memory, or im2col's pixels, to or from shared memory.
#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/exec/bulk_lane.h"
#include "sim/exec/bulk_reduce.h"
#include "sim/exec/cluster.h"
#include "sim/ir/program.h"
#include "sim/tensor_map.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

using ptx::Space;
using ptx::Type;

constexpr std::uint64_t kMapAlignment = 64;
constexpr std::uint64_t kTileAlignment = 128;

/// The box of one copy.
struct Tile {
  TensorMapParameters map;
  std::uint64_t element = 1;                          ///< bytes
  std::array<std::int64_t, kMaxTensorRank> origin{};  ///< coordinates of the box's first element
  std::array<std::uint64_t, kMaxTensorRank> count{};  ///< elements that land in shared memory
  std::array<std::int64_t, kMaxTensorRank> offset{};  ///< im2col's, of W, H and D
  std::uint64_t row_bytes = 0, rows = 1;
  std::uint64_t bytes() const { return row_bytes * rows; }
};

/// Part of a row that lies inside the tensor: `bytes` at `global`, and at `tile` of the tile.
struct Run {
  std::byte* global = nullptr;
  std::uint64_t tile = 0, bytes = 0;
  std::uint64_t address = 0;  ///< of `global`
};

/// Place in shared memory of byte `offset`: bits of the address of a 16-byte chunk within a row of
/// 128 bytes are exchanged by bits of the row's number.
std::uint64_t swizzled(std::uint64_t offset, int swizzle) {
  const std::uint64_t chunks = (std::uint64_t{1} << swizzle) - 1;  // 0, 1, 3 or 7
  return offset ^ ((offset >> 7 & chunks) << 4);
}

bool read_map(const BulkLane& lane, std::uint64_t address, std::uint32_t coordinates, Tile& tile) {
  const std::byte* bytes =
      lane.find(Space::generic, AccessKind::read, address, kTensorMapBytes, kMapAlignment);
  if (bytes == nullptr) return false;
  const auto map = decode_tensor_map(bytes);
  if (!map)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      "the 128 bytes are no tensor map: make it with cuTensorMapEncodeTiled and "
                      "pass it as a __grid_constant__ parameter");
  if (static_cast<std::uint32_t>(map->rank) != lane.form.rank)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      format("the tensor map has rank {}, the instruction takes {} coordinates",
                             map->rank, lane.form.rank));
  if (map->im2col != lane.form.im2col)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      map->im2col ? "the tensor map is one for im2col, the instruction is not"
                                  : "the instruction is one for im2col, the tensor map is not");
  if (map->interleave != 0)
    return lane.fault(FaultKind::unsupported, address, kTensorMapBytes,
                      "tensor maps with an interleave are not simulated");
  tile.map = *map;
  tile.element = tensor_element_bytes(map->type);
  const std::uint32_t* lists = lane.warp.program->lists.data() + coordinates;
  const std::uint32_t rank = lane.form.rank;
  tile.map.step[0] = 1;  // without an interleave the first dimension has no stride
  tile.count[0] = tile.map.box[0];
  tile.row_bytes = tile.count[0] * tile.element;
  for (std::uint32_t i = 0; i < rank; ++i)
    tile.origin[i] = static_cast<std::int32_t>(lane.word(lists[i]));
  if (map->im2col) {
    tile.rows = map->pixels;
    const bool has_offsets = lane.form.kind == BulkForm::tensor_to_shared;
    const int most = 2 * tensor_corner_limit(map->rank) - 1;
    for (std::uint32_t i = 1; has_offsets && i + 1 < rank; ++i) {
      tile.offset[i] = lane.half(lists[rank + i - 1]);
      if (tile.offset[i] > most)
        return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                          format("an im2col offset of {} is not in 0 to {}, which {} coordinates "
                                 "allow",
                                 tile.offset[i], most, rank));
    }
    return true;
  }
  for (std::uint32_t i = 1; i < rank; ++i) {
    tile.count[i] = (tile.map.box[i] + tile.map.step[i] - 1) / tile.map.step[i];
    tile.rows *= tile.count[i];
  }
  return true;
}

/// Where the rows of a tile begin in the tensor, one after the other.
class Rows {
 public:
  explicit Rows(const Tile& tile) : tile_(tile), at_(tile.origin) {}

  /// The row's first byte if its first element were 0; nothing for a row outside.
  std::optional<std::uint64_t> address() const {
    const TensorMapParameters& map = tile_.map;
    std::uint64_t address = map.address;
    for (std::size_t d = 1; d < rank(); ++d) {
      const std::int64_t at = at_[d] + tile_.offset[d];
      if (at < 0 || at >= static_cast<std::int64_t>(map.extent[d])) return std::nullopt;
      address += static_cast<std::uint64_t>(at) * map.stride[d];
    }
    return address;
  }

  void advance() {
    for (std::size_t d = 1; d < rank(); ++d) {
      at_[d] += tile_.map.step[d];
      if (at_[d] <= last(d)) return;
      at_[d] = first(d);
    }
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(tile_.map.rank); }
  bool bounds_pixels(std::size_t d) const { return tile_.map.im2col && d + 1 < rank(); }
  std::int64_t first(std::size_t d) const {
    return bounds_pixels(d) ? tile_.map.lower[d - 1] : tile_.origin[d];
  }
  std::int64_t last(std::size_t d) const {
    const TensorMapParameters& map = tile_.map;
    if (bounds_pixels(d)) return static_cast<std::int64_t>(map.extent[d]) - 1 + map.upper[d - 1];
    if (map.im2col) return std::numeric_limits<std::int64_t>::max();  // images follow each other
    return tile_.origin[d] + static_cast<std::int64_t>((tile_.count[d] - 1) * map.step[d]);
  }

  const Tile& tile_;
  std::array<std::int64_t, kMaxTensorRank> at_;
};

/// The runs of the tile that lie inside the tensor. False after a finding.
bool find_runs(const BulkLane& lane, const Tile& tile, AccessKind kind, std::vector<Run>& runs) {
  const TensorMapParameters& map = tile.map;
  const std::int64_t first = std::max<std::int64_t>(tile.origin[0], 0);
  const std::int64_t end =
      std::min<std::int64_t>(tile.origin[0] + static_cast<std::int64_t>(tile.count[0]),
                             static_cast<std::int64_t>(map.extent[0]));
  if (first >= end) return true;
  Rows rows(tile);
  for (std::uint64_t row = 0; row < tile.rows; ++row, rows.advance()) {
    const std::optional<std::uint64_t> begin = rows.address();
    if (!begin) continue;
    Run run;
    run.bytes = static_cast<std::uint64_t>(end - first) * tile.element;
    run.tile =
        row * tile.row_bytes + static_cast<std::uint64_t>(first - tile.origin[0]) * tile.element;
    const std::uint64_t address = *begin + static_cast<std::uint64_t>(first) * tile.element;
    run.address = address;
    run.global = lane.find(Space::global, kind, address, run.bytes, 1);
    if (run.global == nullptr) return false;
    runs.push_back(run);
  }
  return true;
}

/// The tile in one piece, what lies outside the tensor filled as the map says.
std::vector<std::byte> gather(const Tile& tile, const std::vector<Run>& runs) {
  std::vector<std::byte> image(tile.bytes());
  if (tile.map.fills_nan) {
    const bool half = tile.element == 2;
    const std::uint64_t nan = half ? 0x7fff : tile.element == 4 ? 0x7fffffff : 0x7fffffffffffffff;
    for (std::uint64_t at = 0; at < image.size(); at += tile.element)
      std::memcpy(image.data() + at, &nan, tile.element);
  }
  for (const Run& run : runs) std::memcpy(image.data() + run.tile, run.global, run.bytes);
  return image;
}

/// Calls move(byte of shared memory, byte of the tile, count) for pieces that stay together.
/// `offset` is where the tile begins in the block's shared memory.
template <typename F>
void each_piece(std::uint64_t offset, int swizzle, std::uint64_t tile, std::uint64_t bytes,
                F move) {
  if (swizzle == 0) return move(tile, tile, bytes);
  while (bytes != 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(bytes, 16 - tile % 16);
    move(swizzled(offset + tile, swizzle) - offset, tile, piece);
    tile += piece;
    bytes -= piece;
  }
}

/// A swizzled tile may reach over the end of its own bytes, up to the pattern's length.
std::uint64_t shared_bytes(const Tile& tile, std::uint64_t offset) {
  if (tile.map.swizzle == 0) return tile.bytes();
  std::uint64_t end = 0;
  for (std::uint64_t at = 0; at < tile.bytes(); at += 16)
    end = std::max(end, swizzled(offset + at, tile.map.swizzle) - offset + 16);
  return end;
}

/// Where the tile's bytes lie, from `offset` of shared memory on.
std::vector<Piece> shared_pieces(const Tile& tile, std::uint64_t offset) {
  constexpr std::uint64_t kRow = 128;  // swizzles exchange chunks within such rows
  if ((offset | tile.bytes()) % kRow == 0) return {{0, tile.bytes()}};
  std::vector<Piece> pieces;
  each_piece(offset, tile.map.swizzle, 0, tile.bytes(),
             [&](std::uint64_t shared, std::uint64_t, std::uint64_t bytes) {
               pieces.push_back({shared, bytes});
             });
  return pieces;
}

std::vector<Piece> global_pieces(const std::vector<Run>& runs) {
  std::vector<Piece> pieces;
  for (const Run& run : runs) pieces.push_back({run.address, run.bytes});
  return pieces;
}

/// The reduction's element type for a map's.
Type reduction_type(int type, ptx::AtomOp op) {
  static constexpr std::array<Type, 13> kTypes{
      Type::none, Type::none, Type::u32,  Type::s32, Type::u64, Type::s64, Type::f16,
      Type::f32,  Type::f64,  Type::bf16, Type::f32, Type::f32, Type::f32};
  const Type plain = kTypes[static_cast<std::size_t>(type)];
  const bool bitwise = op == ptx::AtomOp::and_ || op == ptx::AtomOp::or_ || op == ptx::AtomOp::xor_;
  if (!bitwise) return plain;
  if (plain == Type::u32 || plain == Type::s32) return Type::b32;
  return plain == Type::u64 || plain == Type::s64 ? Type::b64 : Type::none;
}

}  // namespace

bool tensor_to_shared(const BulkLane& lane) {
  const Op* op = lane.op;
  Tile tile;
  if (!read_map(lane, lane.address(op->b, 1), op->c, tile)) return false;
  const std::uint64_t to = lane.address(op->a, 0);
  std::vector<BulkTarget> targets;
  const std::uint32_t mask = lane.form.multicast ? lane.half(op->f) : 0;
  if (!lane.find_targets(to, shared_bytes(tile, to & kOffsetMask), kTileAlignment,
                         lane.address(op->e, 2), mask, targets))
    return false;
  std::vector<Run> runs;
  if (!find_runs(lane, tile, AccessKind::read, runs)) return false;
  if (lane.check() != nullptr)
    lane.note(targets, shared_pieces(tile, to & kOffsetMask), global_pieces(runs));
  return lane.issue([lane = lane.later(), tile, targets, runs] {
    const std::vector<std::byte> image = gather(tile, runs);
    for (const BulkTarget& target : targets) {
      each_piece(target.offset, tile.map.swizzle, 0, image.size(),
                 [&](std::uint64_t shared, std::uint64_t at, std::uint64_t bytes) {
                   std::memcpy(target.data + shared, image.data() + at, bytes);
                 });
      if (!lane.now().complete(target, tile.bytes())) return false;
    }
    return true;
  });
}

bool tensor_to_global(const BulkLane& lane) {
  const Op* op = lane.op;
  Tile tile;
  if (!read_map(lane, lane.address(op->a, 0), op->b, tile)) return false;
  const ptx::AtomOp reduction = lane.form.reduction;
  const Type type = reduction_type(tile.map.type, reduction);
  if (reduction != ptx::AtomOp::none && !can_reduce(reduction, type) &&
      !(type == Type::f32 && reduction == ptx::AtomOp::add))
    return lane.fault(FaultKind::unsupported, 0, 0,
                      format("elements of data type {} have no such reduction", tile.map.type));
  const std::uint64_t from = lane.address(op->c, 1);
  const std::byte* shared = lane.find(Space::shared, AccessKind::read, from,
                                      shared_bytes(tile, from & kOffsetMask), kTileAlignment);
  if (shared == nullptr) return false;
  const bool plain = reduction == ptx::AtomOp::none;
  std::vector<Run> runs;
  if (!find_runs(lane, tile, plain ? AccessKind::write : AccessKind::atomic, runs)) return false;
  if (lane.check() != nullptr) {
    BulkStore store;
    for (const Piece& piece : shared_pieces(tile, from & kOffsetMask))
      store.source.push_back({(from & kOffsetMask) + piece.begin, piece.bytes});
    store.to = global_pieces(runs);
    lane.check()->copy_from(op, lane.warp, lane.lane, std::move(store));
  }
  return lane.issue_in_group(
      [reduction, type, runs, shared, offset = from & kOffsetMask, swizzle = tile.map.swizzle] {
        for (const Run& run : runs) {
          each_piece(offset, swizzle, run.tile, run.bytes,
                     [&](std::uint64_t at, std::uint64_t tile_at, std::uint64_t bytes) {
                       reduce_shared_global(run.global + (tile_at - run.tile), shared + at, bytes,
                                            reduction, type);
                     });
        }
        return true;
      });
}

}  // namespace kernwright::sim
