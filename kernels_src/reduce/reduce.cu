// Reductions over the axes of a strided view. Each thread gathers a part of a result's elements,
// and the parts are combined in a fixed order: equal elements give equal bits.
#include <kernwright/overlap.cuh>
#include <kernwright/posted.cuh>
#include <kernwright/reducers.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kBlock = 256;

/// How the elements of a row lie in memory: anyhow, or one axis without gaps, where packs are
/// aligned in all rows or only in some.
enum RowAccess { kWalked, kAligned, kUnaligned };

/// Loads of a thread of columns in flight at once.
constexpr int kColumnLoads = 8;

/// The places of elements and results.
template <typename Index>
struct ReduceParameters {
  Walk<2, 4> kept;
  Walk<2, 4> reduced;
  Index outputs;   ///< results
  Index length;    ///< elements that become one
  Index segment;   ///< elements of a segment
  Index segments;  ///< of each result
  int lanes;       ///< rows: threads of a result; columns: packs side by side
  Call call;
};

/// Memory for the states of blocks, used with several segments: the state of result r and segment s
/// is states[s * outputs + r]. The last block for a group of results joins them: a word of
/// `arrived` for each group. Or states are `posted`: for a single result with at most kBlock
/// segments. These words are zero before and after the launch.
template <typename State>
struct Partial {
  State* states;
  unsigned* arrived;
  UInt64* posted;
};

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> load(const char* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}

template <typename Op>
__device__ __forceinline__ void store(const typename Op::State& state, char* to, Call call) {
  *reinterpret_cast<typename Op::Output*>(to) = Op::finish(state, call);
}

/// Adds the packs `first`, `first` + `step` ... below `count` to kPack parts; load_at(element)
/// gives the pack at element `begin` + number * kPack.
template <typename Op, int kPack, int kLoads, typename Index, typename LoadAt>
__device__ __forceinline__ void gather(typename Op::Part* part, const ReduceParameters<Index>& plan,
                                       Index begin, Index first, Index step, Index count,
                                       LoadAt load_at) {
  using Elements = Pack<typename Op::Input, kPack>;
  for (Index u = first; u < count; u += step * kLoads) {
    Elements elements[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (u + k * step < count) elements[k] = load_at(begin + (u + k * step) * kPack);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (u + k * step >= count) break;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        Op::add(part[j], elements[k].value[j], begin + (u + k * step) * kPack + j, plan.call);
      }
    }
  }
}

/// Gives the parts below `shift` to the thread before, of the `lanes` of a row, and then turns the
/// parts by `shift`. Every thread of the block calls it.
template <typename Part, int kPack>
__device__ __forceinline__ void turn_parts(Part (&part)[kPack], int shift, int lanes) {
  constexpr int kWarps = kBlock / 32;
  __shared__ alignas(16) unsigned char memory[kWarps * kPack * sizeof(Part)];
  Part* const firsts = reinterpret_cast<Part*>(memory);  // of the warps' first threads
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int among = lanes < 32 ? lanes : 32;
  const int next = lane / among * among + (lane + 1) % among;
  if (lanes > 32) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (lane == 0) firsts[warp * kPack + j] = part[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    Part given = shuffle_from(part[j], next);
    if (lanes > 32 && lane == 31) given = firsts[(warp + 1) % kWarps * kPack + j];
    if (j < shift) part[j] = given;
  }
#pragma unroll
  for (int by = 1; by < kPack; by *= 2) {
    Part turned[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      turned[j] = part[j];
      if (shift & by) turned[j] = part[(j + by) % kPack];
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) part[j] = turned[j];
  }
}

/// Elements [begin, end) of an unaligned row, with `packs` whole packs. Threads load aligned packs,
/// each of which has the last `shift` elements of one pack and the first elements of the next pack.
/// An element belongs to the part of this thread, or of the previous thread, by its position in the
/// pack. The first aligned pack and the last one may reach beyond the row: their elements are
/// loaded one by one.
template <typename Op, int kPack, int kLoads, typename Index>
__device__ __forceinline__ void gather_unaligned(typename Op::Part (&part)[kPack], const char* from,
                                                 const ReduceParameters<Index>& plan, Index begin,
                                                 Index end, Index packs, int lane) {
  using Element = typename Op::Input;
  constexpr int kBytes = kPack * sizeof(Element);
  const auto place = [from](Index at) {
    return from + static_cast<long long>(at) * sizeof(Element);
  };
  const auto address = reinterpret_cast<unsigned long long>(place(begin));
  const int shift = static_cast<int>(address % kBytes / sizeof(Element));
  const Index step = plan.lanes;
  const auto add_places = [&](Index element, int low, int high) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (j < low || j >= high) continue;
      const Index at = element + j - shift;
      Op::add(part[j], load<Element, 1>(place(at)).value[0], at, plan.call);
    }
  };
  for (Index i = begin + packs * kPack + lane; i < end; i += step) {  // behind the last pack
    add_places(i, shift, shift + 1);
  }
  if (packs > 0) {
    if (lane == 0) add_places(begin, shift, kPack);
    const Index first = lane == 0 ? step : lane;
    gather<Op, kPack, kLoads>(part, plan, begin - shift, first, step, packs,
                              [place](Index at) { return load<Element, kPack>(place(at)); });
    if (packs % step == lane) add_places(begin + packs * kPack, 0, shift);
  }
  turn_parts(part, shift, plan.lanes);
}

/// The state of a thread's parts.
template <typename Op, int kPack>
__device__ __forceinline__ typename Op::State joined_parts(const typename Op::Part (&part)[kPack]) {
  if constexpr (Op::kClosesParts) return Op::close_parts(part);
  typename Op::State state = Op::close(part[0]);
#pragma unroll
  for (int j = 1; j < kPack; ++j) state = Op::combine(state, Op::close(part[j]));
  return state;
}

/// The state of elements [begin, end) of one row, gathered by every `lanes`-th thread. The part of
/// an element depends on the index alone: rows of equal elements give equal bits at any address.
template <typename Op, int kPack, int kLoads, RowAccess kAccess, typename Index>
__device__ __forceinline__ typename Op::State gather_row(const char* from,
                                                         const ReduceParameters<Index>& plan,
                                                         Index begin, Index end, int lane) {
  using Element = typename Op::Input;
  typename Op::Part part[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) part[j] = Op::begin();
  const Index packs = (end - begin) / kPack, first = lane, step = plan.lanes;
  if constexpr (kAccess == kWalked) {
    gather<Op, kPack, kLoads>(part, plan, begin, first, step, packs, [from, &plan](Index at) {
      return load<Element, kPack>(from + walk_offsets(plan.reduced, at).offset[1]);
    });
  } else {
    const auto place = [from](Index at) {
      return from + static_cast<long long>(at) * sizeof(Element);
    };
    if constexpr (kAccess == kUnaligned) {
      gather_unaligned<Op, kPack, kLoads>(part, from, plan, begin, end, packs, lane);
    } else {
      if constexpr (kPack > 1) {  // elements behind the last pack
        for (Index i = begin + packs * kPack + lane; i < end; i += step) {
          Op::add(part[0], load<Element, 1>(place(i)).value[0], i, plan.call);
        }
      }
      gather<Op, kPack, kLoads>(part, plan, begin, first, step, packs,
                                [place](Index at) { return load<Element, kPack>(place(at)); });
    }
  }
  return joined_parts<Op, kPack>(part);
}

template <typename Op>
struct Combine {
  __device__ typename Op::State operator()(const typename Op::State& a,
                                           const typename Op::State& b) const {
    return Op::combine(a, b);
  }
};

/// For elements that are neighbours along a reduced axis. A result has `lanes` threads, a power of
/// two up to 32, or a block. kLoads: loads of a thread in flight at once.
template <typename Op, int kPack, int kLoads, RowAccess kAccess, typename Index>
__global__ void __launch_bounds__(kBlock)
    reduce_rows(char* __restrict__ to, const char* __restrict__ from,
                const Partial<typename Op::State> partial, const ReduceParameters<Index> plan) {
  pdl_wait_then_launch_small();
  const Index segment = blockIdx.x % plan.segments;
  const Index first = blockIdx.x / plan.segments * (kBlock / plan.lanes);
  const Index lane_output = first + threadIdx.x / plan.lanes;
  const bool lives = lane_output < plan.outputs;
  // All lanes of a warp exchange values, so spare lanes compute the last result again.
  const Index output = lives ? lane_output : plan.outputs - 1;
  const int lane = threadIdx.x % plan.lanes;
  const WalkOffsets<2> at = walk_offsets(plan.kept, output);
  const Index begin = segment * plan.segment;
  const Index end = plan.length - begin < plan.segment ? plan.length : begin + plan.segment;
  typename Op::State state =
      gather_row<Op, kPack, kLoads, kAccess>(from + at.offset[1], plan, begin, end, lane);
  if (plan.lanes > 32) {
    state = block_reduce<kBlock>(state, Combine<Op>(), Op::close(Op::begin()));
  } else {
    for (int mask = plan.lanes / 2; mask > 0; mask /= 2) {
      state = Op::combine(state, shuffle_xor(state, mask));
    }
  }
  if (plan.segments == 1) {
    if (lane == 0 && lives) store<Op>(state, to + at.offset[0], plan.call);
    return;
  }
  // The whole block works on a result of several segments. Thread s % kBlock takes segment s.
  typename Op::State share = Op::close(Op::begin());
  if (partial.posted != nullptr) {
    constexpr int kWords = kPostedWords<typename Op::State>;
    if (segment + 1 < plan.segments) {
      if (lane == 0) post(partial.posted + segment * kWords, state);
      return;
    }
    // NOTE: the last block waits for blocks that started earlier; nobody waits for the last block.
    if (threadIdx.x < segment) {
      UInt64* const at = partial.posted + threadIdx.x * kWords;
      share = Op::combine(share, take_posted<typename Op::State>(at));
      clear_posted<typename Op::State>(at);
    } else if (threadIdx.x == segment) {
      share = Op::combine(share, state);
    }
  } else {
    if (lane == 0) partial.states[segment * plan.outputs + output] = state;
    if (!is_last_block(partial.arrived + output, static_cast<unsigned>(plan.segments))) return;
    for (Index s = threadIdx.x; s < plan.segments; s += kBlock) {
      share = Op::combine(share, partial.states[s * plan.outputs + output]);
    }
  }
  state = block_reduce<kBlock>(share, Combine<Op>(), Op::close(Op::begin()));
  if (lane == 0) store<Op>(state, to + at.offset[0], plan.call);
}

/// Combines the states of all threads of a column (threadIdx.x % lanes) in the first thread of the
/// column.
template <typename Op, int kPack>
__device__ __forceinline__ void combine_columns(typename Op::State (&state)[kPack], int lanes) {
  using State = typename Op::State;
  constexpr int kUpper = kBlock / 2;
  __shared__ alignas(16) unsigned char memory[kUpper * kPack * sizeof(State)];
  State* const states = reinterpret_cast<State*>(memory);
  for (int half = kUpper; half >= 32 && half >= lanes; half /= 2) {
    const int above = static_cast<int>(threadIdx.x) - half;
    __syncthreads();  // the states before may still be read
    if (above >= 0 && above < half) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) states[j * kUpper + above] = state[j];
    }
    __syncthreads();
    if (above >= 0) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      state[j] = Op::combine(state[j], states[j * kUpper + threadIdx.x]);
    }
  }
  for (int mask = 16; mask >= lanes; mask /= 2) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) state[j] = Op::combine(state[j], shuffle_xor(state[j], mask));
  }
}

/// States side by side, in accesses of up to 16 bytes.
template <typename State, int kPack>
struct StateRow {
  static constexpr int kSize = sizeof(State), kMost = kSize < 16 ? 16 / kSize : 1;
  static constexpr int kUnit = (kSize & (kSize - 1)) != 0 ? 1 : kPack < kMost ? kPack : kMost;
  struct alignas(kUnit == 1 ? alignof(State) : kUnit * kSize) Unit {
    State value[kUnit];
  };

  __device__ static void load(State (&to)[kPack], const State* from) {
#pragma unroll
    for (int j = 0; j < kPack; j += kUnit) {
      const Unit unit = *reinterpret_cast<const Unit*>(from + j);
#pragma unroll
      for (int u = 0; u < kUnit; ++u) to[j + u] = unit.value[u];
    }
  }
  __device__ static void store(State* to, const State (&from)[kPack]) {
#pragma unroll
    for (int j = 0; j < kPack; j += kUnit) {
      Unit unit;
#pragma unroll
      for (int u = 0; u < kUnit; ++u) unit.value[u] = from[j + u];
      *reinterpret_cast<Unit*>(to + j) = unit;
    }
  }
};

/// A thread's share of the segments' states of a pack of results, whose first state is at `states`.
/// Several loads overlap: the last block of a group reads when all further blocks are done.
template <typename Op, int kPack, typename Index>
__device__ __forceinline__ void join_segments(typename Op::State (&state)[kPack],
                                              const typename Op::State* states,
                                              const ReduceParameters<Index>& plan, bool lives) {
  using State = typename Op::State;
  constexpr int kLoads = sizeof(State) * kPack <= 32 ? 4 : 1;
  const Index step = kBlock / plan.lanes;
#pragma unroll
  for (int j = 0; j < kPack; ++j) state[j] = Op::close(Op::begin());
  for (Index s = threadIdx.x / plan.lanes; lives && s < plan.segments; s += step * kLoads) {
    State loaded[kLoads][kPack];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (s + k * step >= plan.segments) break;
      StateRow<State, kPack>::load(loaded[k], states + (s + k * step) * plan.outputs);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (s + k * step >= plan.segments) break;
#pragma unroll
      for (int j = 0; j < kPack; ++j) state[j] = Op::combine(state[j], loaded[k][j]);
    }
  }
}

/// Elements are neighbours along a kept axis: a thread gathers kPack columns side by side. The
/// extents and offsets of plan.kept are in packs; `apart` is the distance between the results of a
/// pack, in bytes.
template <typename Op, int kPack, typename Index>
__global__ void __launch_bounds__(kBlock, sizeof(typename Op::State) * kPack <= 32 ? 4 : 1)
    reduce_columns(char* __restrict__ to, const char* __restrict__ from,
                   const Partial<typename Op::State> partial, const ReduceParameters<Index> plan,
                   long long apart) {
  pdl_wait_then_launch_small();
  // Blocks side by side read neighbours of a row.
  const Index groups = gridDim.x / plan.segments;
  const Index segment = blockIdx.x / groups, group = blockIdx.x % groups;
  const Index column = group * plan.lanes + threadIdx.x % plan.lanes;
  const bool lives = column < plan.outputs / kPack;
  const WalkOffsets<2> at = walk_offsets(plan.kept, lives ? column : Index(0));
  const Index begin = segment * plan.segment;
  const Index end = plan.length - begin < plan.segment ? plan.length : begin + plan.segment;
  const Index step = kBlock / plan.lanes;
  // Loads then need no walk. Packs of several elements took longer so (H200).
  const bool is_straight = kPack == 1 && plan.reduced.ndim <= 1;
  using Elements = Pack<typename Op::Input, kPack>;
  typename Op::Part part[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) part[j] = Op::begin();
  for (Index i = begin + threadIdx.x / plan.lanes; lives && i < end; i += step * kColumnLoads) {
    Elements elements[kColumnLoads];
    if (is_straight && i + (kColumnLoads - 1) * step < end) {
#pragma unroll
      for (int k = 0; k < kColumnLoads; ++k) {
        elements[k] = load<typename Op::Input, kPack>(from + at.offset[1] +
                                                      (i + k * step) * plan.reduced.stride[0][1]);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kColumnLoads; ++k) {
        if (i + k * step < end) {
          elements[k] = load<typename Op::Input, kPack>(
              from + at.offset[1] + walk_offsets(plan.reduced, i + k * step).offset[1]);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kColumnLoads; ++k) {
      if (i + k * step >= end) break;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        Op::add(part[j], elements[k].value[j], i + k * step, plan.call);
      }
    }
  }
  typename Op::State state[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) state[j] = Op::close(part[j]);
  combine_columns<Op, kPack>(state, plan.lanes);
  const bool has_results = threadIdx.x < plan.lanes && lives;
  if (plan.segments > 1) {
    using State = typename Op::State;
    State* const states = partial.states + column * kPack;
    if (has_results) StateRow<State, kPack>::store(states + segment * plan.outputs, state);
    if (!is_last_block(partial.arrived + group, static_cast<unsigned>(plan.segments))) return;
    join_segments<Op, kPack>(state, states, plan, lives);
    combine_columns<Op, kPack>(state, plan.lanes);
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    if (has_results) store<Op>(state[j], to + at.offset[0] + j * apart, plan.call);
  }
}
