// Tensor copies: a box of a tensor in global memory, or im2col's pixels, to or from shared memory.
#include "base/format.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/copy/bulk_lane.h"
#include "sim/exec/copy/bulk_reduce.h"
#include "sim/exec/copy/tensor_tile.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

using ptx::Space;
using ptx::Type;

constexpr std::uint64_t kTileAlignment = 128;

/// Place in shared memory of byte `offset`: bits of the address of a 16-byte chunk within a row of
/// 128 bytes are exchanged by bits of the row's number.
std::uint64_t swizzled(std::uint64_t offset, int swizzle) {
  const std::uint64_t chunks = (std::uint64_t{1} << swizzle) - 1;  // 0, 1, 3 or 7
  return offset ^ ((offset >> 7 & chunks) << 4);
}

/// The tile in one piece; elements outside the tensor are filled as the map says.
std::vector<std::byte> gather(const Tile& tile, const std::vector<Run>& runs) {
  std::vector<std::byte> image(tile.bytes());
  if (tile.map.fills_nan) {
    constexpr std::uint16_t kFill = 0x7ff7;  // an H200's, whatever the type
    for (std::uint64_t at = 0; at < image.size(); at += sizeof kFill)
      std::memcpy(image.data() + at, &kFill, sizeof kFill);
  }
  for (const Run& run : runs) std::memcpy(image.data() + run.tile, run.global, run.bytes);
  return image;
}

/// Calls move(byte of shared memory, byte of the tile, count) for contiguous pieces. The tile
/// begins at `offset` in the block's shared memory.
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

/// The places of the tile's bytes, from `offset` of shared memory on.
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

/// The same for the part of the tile inside the tensor: the rest is not stored.
std::vector<Piece> stored_pieces(const Tile& tile, std::uint64_t offset,
                                 const std::vector<Run>& runs) {
  std::uint64_t stored = 0;
  for (const Run& run : runs) stored += run.bytes;
  if (stored == tile.bytes()) return shared_pieces(tile, offset);
  std::vector<Piece> pieces;
  for (const Run& run : runs) {
    each_piece(offset, tile.map.swizzle, run.tile, run.bytes,
               [&](std::uint64_t shared, std::uint64_t, std::uint64_t bytes) {
                 pieces.push_back({shared, bytes});
               });
  }
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
  if (!read_tile(lane, lane.address(op->b, 1), op->c, tile)) return false;
  const std::uint64_t to = lane.shared_address(op->a, 0);
  std::vector<BulkTarget> targets;
  const std::uint32_t mask = lane.form.multicast ? lane.half(op->f) : 0;
  if (!lane.find_targets(to, shared_bytes(tile, to & kOffsetMask), kTileAlignment,
                         lane.shared_address(op->e, 2), mask, targets))
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
  if (!read_tile(lane, lane.address(op->a, 0), op->b, tile)) return false;
  const ptx::AtomOp reduction = lane.form.reduction;
  const Type type = reduction_type(tile.map.type, reduction);
  if (reduction != ptx::AtomOp::none && !can_reduce(reduction, type) &&
      !(type == Type::f32 && reduction == ptx::AtomOp::add))
    return lane.fault(FaultKind::unsupported, 0, 0,
                      format("elements of data type {} have no such reduction", tile.map.type));
  const std::uint64_t from = lane.shared_address(op->c, 1);
  const std::byte* shared = lane.find(Space::shared, AccessKind::read, from,
                                      shared_bytes(tile, from & kOffsetMask), kTileAlignment);
  if (shared == nullptr) return false;
  const bool plain = reduction == ptx::AtomOp::none;
  std::vector<Run> runs;
  if (!find_runs(lane, tile, plain ? AccessKind::write : AccessKind::atomic, runs)) return false;
  if (lane.check() != nullptr) {
    BulkStore store;
    store.is_tensor = true;
    for (const Piece& piece : stored_pieces(tile, from & kOffsetMask, runs))
      store.source.push_back({(from & kOffsetMask) + piece.begin, piece.bytes});
    store.to = global_pieces(runs);
    lane.check()->copy_from(op, lane.warp, lane.lane, std::move(store));
  }
  return lane.issue_in_group(
      [reduction, type, runs, shared, offset = from & kOffsetMask, swizzle = tile.map.swizzle] {
        for (const Run& run : runs) {
          each_piece(offset, swizzle, run.tile, run.bytes,
                     [&](std::uint64_t at, std::uint64_t tile_at, std::uint64_t bytes) {
                       reduce_bytes(run.global + (tile_at - run.tile), shared + at, bytes,
                                    reduction, type, true);
                     });
        }
        return true;
      });
}

bool tensor_prefetch(const BulkLane& lane) {
  Tile tile;
  return read_tile(lane, lane.address(lane.op->a, 0), lane.op->b, tile);
}

}  // namespace kernwright::sim
