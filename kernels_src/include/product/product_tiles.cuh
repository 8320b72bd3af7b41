// The next tile of a product: of one product, a batch of them, or groups of rows with sizes known
// to the device alone.
#pragma once

namespace kernwright {

/// A tile among those of its product, or of its group of rows.
struct Place {
  int row, column, batch, split;
};

/// A part of k: the first element, and the steps.
struct Depth {
  int begin, steps;
};

/// The quotient of numbers that are not negative: it takes fewer instructions.
__device__ __forceinline__ int quotient(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) / static_cast<unsigned>(b));
}

/// Tiles are walked down `group` of them, then along the columns: blocks of a wave load equal
/// operands.
__device__ __forceinline__ Place walk_tiles(int group, int row_tiles, int column_tiles, int flat,
                                            int batch, int split) {
  int first = 0, inside = flat;
  if (row_tiles > group) {  // divisions take time that small products feel
    const int band = group * column_tiles;
    const int bands = quotient(flat, band);
    first = bands * group;
    inside = flat - bands * band;
  }
  const int high = min(row_tiles - first, group);
  const bool is_power = (high & (high - 1)) == 0;  // of two, as mostly
  const int column = is_power ? inside >> (__ffs(high) - 1) : quotient(inside, high);
  return {first + inside - column * high, column, batch, split};
}

/// All tiles of a product or a batch with sizes known to the host. A schedule tells the number of
/// tiles, and of each tile the position, the part of k, the rows, and the matrix of the result.
template <typename Problem>
struct AllTiles {
  static constexpr bool kGrouped = false, kPrepares = false, kInside = false;
  const Problem& sizes;

  __device__ AllTiles(const Problem& problem, void*) : sizes(problem) {}
  __device__ void prepare(int) const {}
  __device__ int count() const {
    return sizes.row_tiles * sizes.column_tiles * sizes.batches * sizes.splits;
  }
  __device__ Place place(int tile) const { return walk(tile, sizes.row_tiles, sizes.column_tiles); }
  /// Each product has rows x columns of the tiles.
  __device__ Place walk(int tile, int rows, int columns) const {
    int batch = 0, split = 0;
    if (sizes.batches * sizes.splits > 1) {
      const int z = quotient(tile, rows * columns);
      tile -= z * rows * columns;
      batch = quotient(z, sizes.splits);
      split = z - batch * sizes.splits;
    }
    return walk_tiles(sizes.group, rows, columns, tile, batch, split);
  }
  /// Steps have `elements` of the inner dimension.
  __device__ Depth depth(const Place& at, int elements) const {
    const int first = at.split * sizes.split_steps;
    return {first * elements, min(sizes.split_steps, sizes.steps - first)};
  }
  __device__ int end_depth(const Place&, int all) const { return all; }
  __device__ int first_row(const Place&) const { return 0; }
  __device__ int end_row(const Place&) const { return sizes.rows; }
  __device__ int matrix(const Place& at) const { return at.split * sizes.batches + at.batch; }
};

/// The schedule of one product whose last row and last column of tiles come behind all further
/// tiles, where the problem says that they take less time.
template <typename Problem>
struct EdgesLast : AllTiles<Problem> {
  __device__ EdgesLast(const Problem& problem, void* memory) : AllTiles<Problem>(problem, memory) {}
  __device__ Place place(int tile) const {
    const Problem& problem = this->sizes;
    const int rows = problem.row_tiles - problem.short_rows,
              columns = problem.column_tiles - problem.narrow_columns;
    const int edge = tile - rows * columns, along = problem.short_rows * problem.column_tiles;
    if (edge < 0 || problem.short_rows + problem.narrow_columns == 0)
      return this->walk(tile, rows, columns);
    return edge < along ? Place{rows, edge, 0, 0} : Place{edge - along, columns, 0, 0};
  }
};

enum GroupKind {
  kGroupEnds,     // a number for each group: the row behind it, where the next one begins
  kGroupOffsets,  // one more in front: where the first group begins
  kGroupCounts,   // rows of each group; groups are contiguous
  kGroupsApart    // the same, but groups begin `rows` apart
};

/// Groups of rows. For any input no group leaves the rows, and no two groups share a row: a group
/// that ends before it begins has no rows.
struct Groups {
  const int* numbers;
  int kind, count;
  int rows;        // of all groups; of each, where groups lie apart
  unsigned* next;  // a word that is 0 between launches, where blocks deal out tiles
};

/// Sums of the lanes up to each, none above `most`, which is at most 2^30; without `sums` the
/// largest of them.
__device__ __forceinline__ int running(int value, int most, bool sums) {
  const int lane = threadIdx.x % 32;
  value = min(value, most);
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const int before = __shfl_up_sync(~0u, value, apart);
    const int both = sums ? min(value + before, most) : max(value, before);
    if (lane >= apart) value = both;
  }
  return value;
}

constexpr int kDealt = 16;  // numbers in front of a table of groups

/// The rows and tiles of groups; 2 * count + 2 numbers in shared memory.
struct GroupTable {
  int* ends;   // [0]: where the first group begins; [g + 1]: the row behind group g
  int* tiles;  // [g]: tiles of rows of all groups before
  const Groups& groups;

  __device__ GroupTable(const Groups& given, void* memory)
      : ends(static_cast<int*>(memory)), tiles(ends + given.count + 1), groups(given) {}
  __device__ int first(int group) const {
    return groups.kind == kGroupsApart ? group * groups.rows : ends[group];
  }
  __device__ int end(int group) const { return ends[group + 1]; }
  __device__ int clamped(int number) const { return min(max(number, 0), groups.rows); }

  __device__ int number(int group) const {
    return group < groups.count ? clamped(groups.numbers[group + (groups.kind == kGroupOffsets)])
                                : 0;
  }

  /// By a warp. Tiles have `tile_rows`, and there are at most `most`.
  __device__ void fill(int tile_rows, int most) const {
    const int lane = threadIdx.x % 32;
    int behind = groups.kind == kGroupOffsets ? clamped(groups.numbers[0]) : 0, before = 0;
    if (lane == 0) {
      ends[0] = behind;
      tiles[0] = 0;
    }
    int next = number(lane);  // loaded during the sum of the previous ones
#pragma unroll 1
    for (int group = lane; group - lane < groups.count; group += 32) {
      const int given = next;
      next = number(group + 32);
      int kind = groups.kind;
      asm volatile("" : "+r"(kind));  // else the compiler makes a loop for each kind
      const bool counts = kind == kGroupCounts;
      const int upto = running(given, groups.rows, counts);
      int last = counts ? min(behind + upto, groups.rows) : max(behind, upto);
      int begin = __shfl_up_sync(~0u, last, 1);
      if (lane == 0) begin = behind;
      behind = __shfl_sync(~0u, last, 31);
      if (kind == kGroupsApart) {
        begin = group * groups.rows;
        last = begin + given;
      }
      const int high = group < groups.count ? (last - begin + tile_rows - 1) / tile_rows : 0;
      const int all = min(before + running(high, most, true), most);
      before = __shfl_sync(~0u, all, 31);
      if (group < groups.count) {
        ends[group + 1] = last;
        tiles[group + 1] = all;
      }
    }
  }
  /// The group that has a tile of rows.
  __device__ __forceinline__ int find(int tile) const {
    int low = 0, high = groups.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (tiles[middle] <= tile) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

/// Each group of rows times a separate matrix. The batches of the problem are the groups, and the
/// result is one matrix.
template <typename Problem>
struct Grouped {
  Problem sizes;
  Groups groups;
};
template <typename Problem>
struct GroupTiles {
  static constexpr bool kGrouped = true, kPrepares = true, kInside = false;
  const Problem& sizes;
  int* dealt;  // [stage]: the tile whose first part is there; none: -1
  GroupTable table;

  __device__ GroupTiles(const Grouped<Problem>& problem, void* memory)
      : sizes(problem.sizes),
        dealt(static_cast<int*>(memory)),
        table(problem.groups, dealt + kDealt) {}
  /// The next tile behind the first tile of each block. A block asks once for each of its tiles,
  /// the last time in vain: the requests of all blocks equal the number of tiles, and the word is 0
  /// again.
  __device__ int take(int tiles) const {
    return static_cast<int>(atomicInc(table.groups.next, static_cast<unsigned>(tiles - 1)));
  }
  /// By a warp, before the block meets.
  __device__ void prepare(int tile_rows) const { table.fill(tile_rows, sizes.row_tiles); }
  __device__ int count() const { return table.tiles[table.groups.count] * sizes.column_tiles; }
  __device__ Place place(int tile) const {
    const int group = table.find(quotient(tile, sizes.column_tiles)), before = table.tiles[group];
    return walk_tiles(sizes.group, table.tiles[group + 1] - before, sizes.column_tiles,
                      tile - before * sizes.column_tiles, group, 0);
  }
  __device__ Depth depth(const Place&, int) const { return {0, sizes.steps}; }
  __device__ int end_depth(const Place&, int all) const { return all; }
  __device__ int first_row(const Place& at) const { return table.first(at.batch); }
  __device__ int end_row(const Place& at) const { return table.end(at.batch); }
  __device__ int matrix(const Place&) const { return 0; }
};

/// The inner dimension is that of the groups, and each group has a matrix of the result.
template <typename Problem>
struct GroupedInside {
  Problem sizes;
  Groups groups;
};
template <typename Problem>
struct InsideTiles : AllTiles<Problem> {
  static constexpr bool kPrepares = true, kInside = true;
  GroupTable table;

  __device__ InsideTiles(const GroupedInside<Problem>& problem, void* memory)
      : AllTiles<Problem>(problem.sizes, memory),
        table(problem.groups, static_cast<int*>(memory) + kDealt) {}
  __device__ void prepare(int tile_rows) const { table.fill(tile_rows, 1 << 30); }
  __device__ Depth depth(const Place& at, int elements) const {
    const int begin = table.first(at.batch), end = table.end(at.batch);
    return {begin, end > begin ? (end - begin - 1) / elements + 1 : 0};
  }
  __device__ int end_depth(const Place& at, int) const { return table.end(at.batch); }
};

/// The schedule of a problem, and the sizes in it.
template <typename Problem>
struct ScheduleTraits {
  using Type = AllTiles<Problem>;
  __device__ static const Problem& sizes(const Problem& problem) { return problem; }
};
template <typename Problem>
struct ScheduleTraits<Grouped<Problem>> {
  using Type = GroupTiles<Problem>;
  __device__ static const Problem& sizes(const Grouped<Problem>& problem) { return problem.sizes; }
};
template <typename Problem>
struct ScheduleTraits<GroupedInside<Problem>> {
  using Type = InsideTiles<Problem>;
  __device__ static const Problem& sizes(const GroupedInside<Problem>& problem) {
    return problem.sizes;
  }
};

}  // namespace kernwright
