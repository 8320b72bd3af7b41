// What is said of a block in which nobody can go on.
#pragma once

namespace kernwright::sim {

struct ClusterMember;
struct Program;

/// Nobody can run, or all poll in vain, and no barrier is complete: makes that the block's fault,
/// with who waits where, in the other blocks of its cluster too.
void report_deadlock(ClusterMember& member, const Program& program);

}  // namespace kernwright::sim
