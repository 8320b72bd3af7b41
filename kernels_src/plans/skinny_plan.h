// How a product with few rows is cut among blocks.
#pragma once

#include "base/scalar_type.h"

#include <cstdint>

namespace kernwright::kernels {

constexpr std::int64_t kSkinnyRows = 64;      ///< of x, at most
constexpr std::int64_t kLeastStagedCopy = 4;  ///< bytes that skinny_staged.cu copies at a time

/// Tables of launch choices name a kernel by its number: 9 was a kernel of earlier releases.
enum class SkinnyKernel : std::uint8_t {
  chosen,        ///< by plan_skinny()
  tiles,         ///< on the tensor cores
  dot,           ///< on the other cores
  column_tiles,  ///< on the tensor cores, weights with neighbours along n
  columns,       ///< on the other cores, weights with neighbours along n
  staged,        ///< on the tensor cores, weights and x through shared memory
  ring,          ///< packed_ring.cu: packed weights alone, through shared memory
  wgmma,         ///< on Hopper's tensor cores, weights of either neighbours, in TMA tiles
  row,           ///< one row of x in registers of blocks that stay, weights of one byte
  bytes = 10,    ///< as wgmma, weights of one byte: they are decoded in registers
  shifted,       ///< as dot, rows from any addresses: packs out of the aligned ones around them
};

/// The parameters of the kernels in skinny.cu and skinny_columns.cu; 0 or less leaves the choice to
/// the rules.
struct SkinnyPlan {
  SkinnyKernel kernel = SkinnyKernel::chosen;
  int warps = 0;    ///< of a block, which share k
  int rows = 0;     ///< of weights with neighbours along k: tiles of 16 that a block has, or rows
  int columns = 0;  ///< of x: tiles of 8, or single ones
  int unroll = 0;   ///< loads of a row in flight; stages; parts of k of a warp; teams of warps
  int hint = -1;    ///< 0, or 1 and 2: more bytes of a line are fetched to the second level
  int splits = 0;   ///< blocks that share the k of some rows
  int ahead = -1;   ///< loads fetched to the second level before the kernel in front has ended
  int stages = 0;   ///< of packed_ring.cu and of the kernels with TMA tiles
  bool clustered = false;  ///< the splits add their accumulators in a cluster of blocks
  int width = 0;           ///< elements of a load; of a copy, of skinny_staged.cu
  bool operator==(const SkinnyPlan&) const = default;
};

/// The shape of a product and what its addresses allow.
struct SkinnyShape {
  std::int64_t batches = 1, m = 1, n = 1, k = 1;
  ScalarType x_type = ScalarType::float32, weight_type = ScalarType::float32;
  int width = 1;             ///< elements that a load of the weights may have
  bool by_columns = false;   ///< neighbours in memory follow each other along n
  bool pairs = false;        ///< four elements of x may be loaded at once
  int multiprocessors = 1;   ///< of the device
  bool overlapping = false;  ///< the device may begin a kernel before the one in front has ended
  bool tensor_cores = true;  ///< the device has those that the kernels use
  bool clusters = false;     ///< the device has clusters of blocks
  bool tma_tiles = false;  ///< the device has wgmma, and tensor maps can describe x and the weights
};

/// Blocks that share out n and m: the grid but for splits and batches.
std::int64_t skinny_blocks(const SkinnyShape& shape, const SkinnyPlan& plan);
/// Dynamic shared memory of a block.
int skinny_shared_bytes(const SkinnyShape& shape, const SkinnyPlan& plan);

/// Clusters of up to 12 blocks, each alone on a multiprocessor, that run at once. A cluster lies in
/// one part of the device, and some parts of an H100 were measured to have room for 12 blocks
/// alone.
std::int64_t clusters_at_once(std::int64_t blocks, std::int64_t multiprocessors);

/// `wanted` with all open points chosen: the one place that decides. Within PlannedRowsScope the
/// kernel, the warps and the splits of a plan for the rows of the scope are wanted.
SkinnyPlan plan_skinny(const SkinnyShape& shape, SkinnyPlan wanted);

/// `plan` where the kernel also applies a norm: more rows of a block share its work. A step of
/// Llama-3.2-1B takes 0.907 ms so on an H200, 0.936 with blocks of two rows.
SkinnyPlan plan_skinny_normed(const SkinnyShape& shape, SkinnyPlan plan);

}  // namespace kernwright::kernels
