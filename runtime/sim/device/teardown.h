// The life of a context's belongings: memory's beginning and end, the context's own end, and
// changes of its peers.
#pragma once

#include "sim/device/objects.h"

namespace kernwright::sim {

/// Ends all streams, events, modules, functions, arrays, textures and allocations of the context.
void tear_down(Context& context);

/// Lets kernels of the context's device reach the memory of its peers, and no other device's.
/// Call with the context's mutex held.
void apply_peers(Context& context);

/// Memory of `bytes` for the context, of the kind, flags and pool in `base`: on the context's
/// device, or on the host for the host kinds. Throws Failure INVALID_VALUE for 0 bytes and
/// OUT_OF_MEMORY.
std::uint64_t allocate_for(Context& context, std::uint64_t bytes, const AllocationInfo& base);

/// Ends one allocation. Throws Failure INVALID_VALUE with a report when `address` is not the start
/// of a live allocation of device memory (or of host memory when `host`), naming `call`.
void free_allocation(std::uint64_t address, bool host, const char* call);

/// Throws the errors of free_allocation(), also for memory about to be freed. With `freeing` it is
/// about to be freed from now on, until cancel_free().
void require_allocation(std::uint64_t address, const char* call, bool freeing);
void cancel_free(std::uint64_t address);

/// The graph's record of memory allocated by one of its nodes; null for any other address.
std::shared_ptr<GraphMemory> graph_memory_at(std::uint64_t address);
/// The allocation belongs to the graph from now on.
void adopt_for_graph(std::uint64_t address, const std::shared_ptr<GraphMemory>& memory);
/// Ends an allocation never given out.
void discard_allocation(std::uint64_t address);
/// Ends the allocation when its graph and everything made from the graph are gone.
void release_graph_memory(std::uint64_t address);

/// Ends a registration by cuMemHostRegister; false when there is none.
bool release_registered(std::uint64_t address);

}  // namespace kernwright::sim
