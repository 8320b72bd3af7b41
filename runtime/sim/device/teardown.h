// What happens to a context's belongings: memory's beginning and end, the context's own end, and
// when its peers change.
#pragma once

#include "sim/device/objects.h"

namespace kernwright::sim {

/// Ends all streams, events, modules, functions, arrays, textures and allocations of the context.
void tear_down(Context& context);

/// Lets kernels of the context's device reach the memory of its peers, and no other device's.
/// Call with the context's mutex held.
void apply_peers(Context& context);

/// Memory of `bytes` for the context, of the kind, flags and pool that `base` names: on the
/// context's device, or on the host for the host kinds. Throws Failure INVALID_VALUE for 0 bytes
/// and OUT_OF_MEMORY.
std::uint64_t allocate_for(Context& context, std::uint64_t bytes, const AllocationInfo& base);

/// Ends one allocation. Throws Failure INVALID_VALUE with a report when `address` is not the start
/// of a live allocation of device memory (or of host memory when `host`), naming `call`.
void free_allocation(std::uint64_t address, bool host, const char* call);

/// Throws what free_allocation() would throw, also when the memory is going to be freed already.
/// With `freeing` it is from now on, until cancel_free().
void require_allocation(std::uint64_t address, const char* call, bool freeing);
void cancel_free(std::uint64_t address);

/// The graph's record of memory that one of its nodes allocates; null for any other address.
std::shared_ptr<GraphMemory> graph_memory_at(std::uint64_t address);
/// The allocation belongs to the graph from now on.
void adopt_for_graph(std::uint64_t address, const std::shared_ptr<GraphMemory>& memory);
/// Ends an allocation that nobody got to know.
void discard_allocation(std::uint64_t address);
/// Ends the allocation when its graph and all that was made from it are gone.
void release_graph_memory(std::uint64_t address);

/// Ends a registration by cuMemHostRegister; false when there is none.
bool release_registered(std::uint64_t address);

}  // namespace kernwright::sim
