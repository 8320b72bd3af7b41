// Attention of many queries: a block has the queries of one head, each warp has rows of these
// queries, and all warps share the tiles of keys and values in shared memory.
#include <kernwright/attention_tile.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;

/// Dropout scales the weights that stay and sets all further weights to 0.
template <int kTiles>
__device__ __forceinline__ void drop_weights(float (&s)[kTiles][4], const AttentionCall& call,
                                             int batch, const ScoreRow (&rows)[2], int first) {
  const int pair = first / 2 + threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float2 factors = kept(call, batch, rows[r].head, rows[r].query, pair + 4 * i);
      s[i][2 * r] *= factors.x;
      s[i][2 * r + 1] *= factors.y;
    }
  }
}

/// kPacks: rows are whole units of 16 bytes.
template <typename T, int kValueDim, bool kPacks>
__device__ __forceinline__ void store_rows(const RunningRows<kValueDim>& running,
                                           const AttentionCall& call, const Sequence& sequence,
                                           int head, int first_row) {
  const int lane = threadIdx.x % 32;
  // Rows behind a packed sequence belong to the next sequence; without packing these rows are 0.
  const int stored = call.q_starts != nullptr ? sequence.queries : call.queries;
  const bool pairs = kPacks || call.value_dim % 2 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = first_row + lane / 4 + 8 * r;
    const bool missing = query >= sequence.queries;
    const float total = running.whole_total(r);
    if (query >= stored) continue;
    const float scale =
        finish_total(call, sequence, head, query, missing ? minus_infinity() : running.peak[r],
                     missing ? 0.0f : total, lane % 4 == 0);
    T* const out = static_cast<T*>(call.out) + sequence.out_first + query * call.out_at.token +
                   head * call.out_at.head;
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i) {
      const int column = 8 * i + lane % 4 * 2;
      const float first = missing ? 0.0f : running.out[i][2 * r] * scale;
      const float second = missing ? 0.0f : running.out[i][2 * r + 1] * scale;
      if (pairs && column < call.value_dim) {
        *reinterpret_cast<unsigned*>(out + column) = MatrixUnit<T>::pair(first, second);
      } else if constexpr (!kPacks) {
        if (column < call.value_dim) out[column] = from_compute<T>(first);
        if (column + 1 < call.value_dim) out[column + 1] = from_compute<T>(second);
      }
    }
  }
}

/// 64 * kRowTiles queries of one head a block, 16 * kRowTiles a warp, kTokens keys a tile. kExtras:
/// 1 with a mask, soft cap or ALiBi, 2 with dropout too. E: elements of keys and values, which have
/// a scale for each token and head with kTokenScales.
template <typename T, typename E, int kDim, int kValueDim, int kRowTiles, int kTokens, bool kAsync,
          int kExtras, bool kTokenScales = false>
__global__ void __launch_bounds__(kThreads) attention(const __grid_constant__ AttentionCall call) {
  constexpr int kRows = 16 * kRowTiles, kBlockRows = kWarps * kRows;
  constexpr int kShare = kTokens / kWarps;  // tokens brought by a warp
  using Queries = TokenCopy<T, 16, kDim, kAsync>;
  using Keys = CacheCopy<T, E, kShare, kDim, kAsync>;
  using Values = CacheCopy<T, E, kShare, kValueDim, kAsync>;
  constexpr int kKeyBytes = kTokens * kDim * sizeof(T);
  constexpr int kStage = kTokens * (kDim + kValueDim) * sizeof(T);
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* const ring = memory + kBlockRows * kDim * sizeof(T);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned index = blockIdx.x;
  // The last row tiles begin first: under a causal mask the last queries see the most keys.
  const int row_tile = call.row_tiles - 1 - static_cast<int>(index % call.row_tiles);
  index /= call.row_tiles;
  const int head = static_cast<int>(index % call.heads);
  int batch = static_cast<int>(index / call.heads), first_row = row_tile * kBlockRows;
  if (PackedTile::are_used(call)) {
    const PackedTile packed(call, row_tile, kBlockRows, 1);
    batch = packed.batch;
    first_row = packed.first_row;
  }
  const int kv_head = head / (call.heads / call.kv_heads);
  const Sequence sequence(call, batch);
  if (call.q_starts != nullptr && (first_row < 0 || first_row >= sequence.queries)) return;
  if (PackedTile::is_left_out(call, batch, sequence.queries)) return;
  const int last_row = min(first_row + kBlockRows, sequence.queries) - 1;
  const int visible = sequence.first_key(call, first_row);
  const int low = visible / kTokens * kTokens;
  const int high = last_row < first_row ? low : sequence.end_key(call, last_row);
  const int tiles = high > low ? (high - low + kTokens - 1) / kTokens : 0;
  const T* const q = static_cast<const T*>(call.q) + sequence.q_first + head * call.q_at.head;
  const E* const k = static_cast<const E*>(call.k) + sequence.k_first + kv_head * call.k_at.head;
  const E* const v = static_cast<const E*>(call.v) + sequence.v_first + kv_head * call.v_at.head;
  const int* const table = call.table == nullptr ? nullptr : call.table + batch * call.table_row;
  bool bad = false;
  const auto start = [&](int tile) {
    const int token = low + tile * kTokens + warp * kShare + lane % kShare;
    long long k_offset = kNoRow, v_offset = kNoRow;
    if (token >= visible && token < high) {
      k_offset = token_offset(call, table, call.k_at, token);
      v_offset = token_offset(call, table, call.v_at, token);
      bad |= k_offset == kNoRow;
    }
    unsigned char* const to = ring + tile % 2 * kStage;
    Keys::start(to + warp * kShare * kDim * sizeof(T), k, k_offset, call.dim);
    Values::start(to + kKeyBytes + warp * kShare * kValueDim * sizeof(T), v, v_offset,
                  call.value_dim);
  };
  const int warp_row = first_row + warp * kRows;
  ScoreRow rows[kRowTiles][2];
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
    const int query = warp_row + 16 * m + lane % 16;
    Queries::start(memory + (warp * kRows + 16 * m) * kDim * sizeof(T), q,
                   query < sequence.queries ? query * call.q_at.token : kNoRow, call.dim);
    for (int r = 0; r < 2; ++r) {
      rows[m][r].set(call, sequence, batch, warp_row + 16 * m + lane / 4 + 8 * r, head);
    }
  }
  if (tiles > 0) start(0);
  commit_copies();
  // Keys seen by every row of the warp, and keys seen by any of them.
  const int last_query = min(warp_row + kRows, sequence.queries) - 1;
  const int all_low = sequence.first_key(call, last_query);
  const int all_high = sequence.end_key(call, warp_row);
  const int any_low = sequence.first_key(call, warp_row);
  const int any_high = last_query < warp_row ? 0 : sequence.end_key(call, last_query);
  float scale = call.scale * (kExtras == 0 ? kLog2E : 1.0f);
  if (call.k_scales != nullptr) scale *= call.k_scales[kv_head];
  const unsigned queries = shared_address(memory);
  RunningRows<kValueDim> running[kRowTiles];
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) running[m].clear();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < tiles) start(tile + 1);
    commit_copies();
    const int first = low + tile * kTokens;
    if (first >= any_high || first + kTokens <= any_low) continue;
    [[maybe_unused]] TokenScales<kTokens> key_scales, value_scales;
    if constexpr (kTokenScales) {
      const long long head_scales =
          sequence.k_batch * call.scales_at.batch + kv_head * call.scales_at.head;
      key_scales.load(call, call.k_token_scales + head_scales, table, first, visible, high);
      value_scales.load(call, call.v_token_scales + head_scales, table, first, visible, high);
    }
    const unsigned keys = shared_address(ring + tile % 2 * kStage);
    float s[kRowTiles][kTokens / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      unsigned left[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        load_left<kDim>(left[m], queries, warp * kRows + 16 * m, step);
      }
#pragma unroll
      for (int i = 0; i < kTokens / 16; ++i) {
        unsigned right[4];
        load_right<kDim>(right, keys, 16 * i, step);
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          MatrixUnit<T>::multiply(s[m][2 * i], left[m], right[0], right[1]);
          MatrixUnit<T>::multiply(s[m][2 * i + 1], left[m], right[2], right[3]);
        }
      }
    }
    const bool edge = first < all_low || first + kTokens > all_high;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      if constexpr (kTokenScales) key_scales.multiply(s[m], 1.0f);
      finish_scores<T, (kExtras > 0)>(s[m], call, rows[m], first, scale, edge);
      running[m].take(s[m]);
      if constexpr (kTokenScales) value_scales.multiply(s[m], kWeightScale);
      if constexpr (kExtras == 2) drop_weights(s[m], call, batch, rows[m], first);
    }
    add_values<T, kRowTiles, kValueDim>(running, s, keys + kKeyBytes);
  }
  wait_copies<0>();
  bad = __syncthreads_or(bad);
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
    if (bad) running[m].total[0] = running[m].total[1] = not_a_number();
    store_rows<T, kValueDim, kAsync>(running[m], call, sequence, head, warp_row + 16 * m);
  }
}
