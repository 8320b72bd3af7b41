// Looks up compile requests in the packs in use.
#pragma once

#include "jit/cache/code_cache.h"
#include "jit/source/include_closure.h"

#include <memory>
#include <span>
#include <string>

namespace kernwright {

/// Target of a request for a compiler with support for the architectures `known`. Throws
/// InvalidArgument.
Target target_of(const TargetRequest& wanted, const IncludeClosure& included,
                 std::span<const int> known, const std::string& version);

/// The request's selection for the target.
CompileSelection selection_of(const CodeRequest& request, Target target);

/// The code from the newest matching pack in use, or null. Needs no compiler: the target is chosen
/// as if the compiler knew every architecture.
std::shared_ptr<const ObjectCode> code_from_packs(const CodeRequest& request,
                                                  const IncludeClosure& included);

/// A sentence about the part of the request missing from all packs in use; empty without packs.
std::string missing_from_packs(const CodeRequest& request, const IncludeClosure& included);

}  // namespace kernwright
