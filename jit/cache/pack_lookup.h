// What a compile request means to the packs in use.
#pragma once

#include "jit/cache/code_cache.h"
#include "jit/source/include_closure.h"

#include <memory>
#include <span>
#include <string>

namespace kernwright {

/// Target of a request for a compiler that knows the architectures `known`. Throws InvalidArgument.
Target target_of(const TargetRequest& wanted, const IncludeClosure& included,
                 std::span<const int> known, const std::string& version);

/// The request's selection for that target.
CompileSelection selection_of(const CodeRequest& request, Target target);

/// The code of the newest pack in use with a match, or null. Needs no compiler: the target is that
/// of a compiler with knowledge of every architecture.
std::shared_ptr<const ObjectCode> code_from_packs(const CodeRequest& request,
                                                  const IncludeClosure& included);

/// A sentence about what no pack in use holds of the request; empty when none is in use.
std::string missing_from_packs(const CodeRequest& request, const IncludeClosure& included);

}  // namespace kernwright
