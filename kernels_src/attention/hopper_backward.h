// Gradients of attention on Hopper: its calls, its tiles, its launches.
#pragma once

#include "core/stream.h"

#include <cstdint>
#include <optional>
#include <span>

namespace kernwright::kernels {

enum class AttentionKernel : std::uint8_t;
struct AttentionOptions;
struct PreparedGradient;

/// Blocks of 128 keys, `stages` tiles of queries on their way or in use. With `overlaps`, the last
/// products of a tile run beside the first of the next: heads and values of up to 192 elements
/// together leave registers for that. `wide`: blocks go over all heads before they come to the next
/// keys; else over as many as the L2 cache holds.
struct HopperBackwardTile {
  int stages = 2;
  bool overlaps = true, wide = false;
  bool operator==(const HopperBackwardTile&) const = default;
};

/// Tiles worth measuring for heads of 64, 96 or 128 elements: each gives right results.
std::span<const HopperBackwardTile> hopper_backward_tiles();

/// As force_attention_kernel(), of attention_backward() alone.
void force_backward_kernel(AttentionKernel kernel, std::optional<HopperBackwardTile> tile);

/// The tile for a call; nothing where the other kernels have to do it: on other devices, with
/// dropout, with a cap beside a mask or ALiBi, for heads above 128 elements, where elements are not
/// 16 bytes apart or go backwards, for few queries. Throws ArgumentError for a forced kernel or
/// tile that does not take the call.
std::optional<HopperBackwardTile> choose_hopper_backward(const PreparedGradient& made,
                                                         const AttentionOptions& options);
void launch_hopper_backward(PreparedGradient& made, const AttentionOptions& options,
                            HopperBackwardTile tile, const Stream& on);

}  // namespace kernwright::kernels
