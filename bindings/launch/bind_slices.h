// Slices, for schedulers.
#pragma once

#include "core/launch/launch_pieces.h"

#include <memory>
#include <span>

namespace kernwright::python {

/// cut_launch() of jit/slicing.h, without Python's lock: it may compile.
std::unique_ptr<LaunchPieces> cut_unlocked(const Kernel& kernel, const LaunchConfig& config,
                                           std::span<void* const> arguments, const LaunchSite& site,
                                           const PieceRequest& request);

}  // namespace kernwright::python
