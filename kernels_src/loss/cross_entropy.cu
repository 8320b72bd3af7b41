// Cross-entropy of rows of logits, and the gradient in the same pass.
//
// A block has a row, or streams several rows. With a gradient the block keeps the row on the chip,
// first in registers, then in shared memory; the rest of the row is read again. One pass finds
// maximum and sum ("online": M. Milakov, N. Gimelshein, "Online normalizer calculation for
// softmax", 2018).
#include <kernwright/async_copy.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/entropy_rows.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/total.cuh>

using namespace kernwright;

/// A row of T that may begin anywhere: `lead` elements up to the first pack, `packs` of N, and
/// `edges` elements before and behind the packs.
template <typename T, int N>
struct RowParts {
  int lead, packs, edges;

  __device__ RowParts(const T* row, int cols) {
    constexpr int kBytes = N * sizeof(T);
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(row) % kBytes);
    lead = past == 0 ? 0 : (kBytes - past) / static_cast<int>(sizeof(T));
    if (lead > cols) lead = cols;
    packs = (cols - lead) / N;
    edges = cols - packs * N;
  }
  __device__ int edge(int e) const { return e < lead ? e : e + packs * N; }
  __device__ int pack(int p) const { return lead + p * N; }
};

/// `grads` may be `logits`. Losses are the unscaled losses of each row. `shared_packs` packs of a
/// row fit the dynamic shared memory. Packs: a thread's packs in registers, with a gradient. `All`:
/// smoothing takes all logits.
template <typename T, typename Target, int N, int Threads, int Packs, bool Gradient, bool All,
          bool Weighted>
__global__ void __launch_bounds__(Threads)
    cross_entropy(const T* logits, long long stride, T* grads, long long grad_stride,
                  const Target* __restrict__ targets, Compute<T>* __restrict__ losses, int cols,
                  int shared_packs, const LossTerms<Compute<T>> terms) {
  using F = Compute<T>;
  extern __shared__ uint4 shared_bytes[];
  Pack<T, N>* const shared = reinterpret_cast<Pack<T, N>*>(shared_bytes);
  const int thread = threadIdx.x;
  const long long row = blockIdx.x;
  const T* const x = logits + row * stride;
  T* const dx = grads + row * grad_stride;
  const long long target = static_cast<long long>(targets[row]);
  if (target == terms.ignored) {
    if constexpr (Gradient)
#pragma unroll 2
      for (int c = thread; c < cols; c += Threads) dx[c] = from_compute<T>(F(0));
    if (thread == 0) losses[row] = 0;
    return;
  }
  const RowTarget<F> wanted(target, cols, terms, Weighted);
  const auto weights_at = [&](int col) { return Weighted ? wanted.weights_at(col) : nullptr; };
  const F at_target = wanted.outside ? F(0) : to_compute(x[target]), from = loss_origin(at_target);
  const RowParts<T, N> parts(x, cols);
  const auto pack_at = [&](int p) {
    return *reinterpret_cast<const Pack<T, N>*>(x + parts.pack(p));
  };

  Seen<F> seen = {lowest<F>(), 0, 0};
  Pack<T, N> held[Packs];
  const auto see_held = [&](int first) {
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (first + k * Threads < parts.packs) held[k] = pack_at(first + k * Threads);
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (first + k * Threads < parts.packs)
        see<All>(seen, held[k].value, weights_at(parts.pack(first + k * Threads)), from);
  };
  int next = Packs * Threads;  // the first pack that is not held
  if constexpr (Gradient) {
    see_held(thread);
#pragma unroll 4
    for (int i = thread; i < shared_packs; i += Threads) {
      if (next + i >= parts.packs) break;
      shared[i] = pack_at(next + i);
      see<All>(seen, shared[i].value, weights_at(parts.pack(next + i)), from);
    }
    next += shared_packs;
#pragma unroll 4
    for (int p = next + thread; p < parts.packs; p += Threads)
      see<All>(seen, pack_at(p).value, weights_at(parts.pack(p)), from);
  } else {
#pragma unroll 1
    for (int p = thread; p < parts.packs; p += Packs * Threads) see_held(p);
  }
#pragma unroll 1
  for (int e = thread; e < parts.edges; e += Threads) {
    const T edge[1] = {x[parts.edge(e)]};
    see<All>(seen, edge, weights_at(parts.edge(e)), from);
  }
  seen = seen_by_block<Threads, All>(seen);

  if (thread == 0) losses[row] = row_loss(seen, at_target, wanted, cols, terms);
  if constexpr (Gradient) {
    const RowGradient<F> gradient = row_gradient(seen, row, wanted, cols, terms);
    const auto write = [&](int p, Pack<T, N>& pack) {
      const int col = parts.pack(p);
      gradient.put(pack.value, col);
      *reinterpret_cast<Pack<T, N>*>(dx + col) = pack;
    };
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (k * Threads + thread < parts.packs) write(k * Threads + thread, held[k]);
    next = Packs * Threads;
    for (int i = thread; i < shared_packs && next + i < parts.packs; i += Threads)
      write(next + i, shared[i]);
    next += shared_packs;
    for (int p = next + thread; p < parts.packs; p += 4 * Threads) {
      Pack<T, N> again[4];  // all four loads are in flight before the first write
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (p + k * Threads < parts.packs) again[k] = pack_at(p + k * Threads);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (p + k * Threads < parts.packs) write(p + k * Threads, again[k]);
    }
#pragma unroll 1
    for (int e = thread; e < parts.edges; e += Threads) {
      const int col = parts.edge(e);
      T edge[1] = {x[col]};
      gradient.put(edge, col);
      dx[col] = edge[0];
    }
  }
}

/// Cross-entropy and gradient for long rows with loads and stores overlapped: a block takes one row
/// after another, and loads the next row while it writes the gradient of the current row. A thread
/// has fixed packs of every row, `Packs` of 16 bytes in registers and `Slots` in dynamic shared
/// memory, and no other thread reads them: rows need no barrier in between. Rows are at most (Packs
/// + Slots) * Threads packs. A multiprocessor has 1024 threads.
template <typename T, typename Target, int N, int Threads, int Packs, int Slots, bool All,
          bool Weighted>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
    streamed_entropy(const T* logits, long long stride, T* grads, long long grad_stride,
                     const Target* __restrict__ targets, Compute<T>* __restrict__ losses,
                     long long rows, int cols, const LossTerms<Compute<T>> terms) {
  using F = Compute<T>;
  using Raw = Pack<T, N>;
  extern __shared__ uint4 shared_bytes[];
  const int thread = threadIdx.x, packs = cols / N;
  Raw* const slots = reinterpret_cast<Raw*>(shared_bytes) + thread;
  const auto make_row = [&](long long r) {
    return reinterpret_cast<const Raw*>(logits + r * stride);
  };

  Raw held[Packs];
  const auto request_held = [&](const Raw* x) {
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (k * Threads + thread < packs) held[k] = x[k * Threads + thread];
  };
  const auto request_slot = [&](const Raw* x, int s) {
    const int p = (Packs + s) * Threads + thread;
    if (p < packs) copy_in_background(slots + s * Threads, x + p);
    end_copy_group();
  };

  long long row = blockIdx.x;
  request_held(make_row(row));
#pragma unroll
  for (int s = 0; s < Slots; ++s) request_slot(make_row(row), s);
  long long target = static_cast<long long>(targets[row]);

  while (row < rows) {
    const long long next = row + gridDim.x;
    const Raw* const following = make_row(next < rows ? next : row);
    const bool is_ignored = target == terms.ignored;
    const RowTarget<F> wanted(target, cols, terms, Weighted && !is_ignored);
    F at_target = 0;
    if ((All || thread == 0) && !wanted.outside)
      at_target = to_compute(logits[row * stride + target]);
    const F from = loss_origin(at_target);

    Seen<F> seen = {lowest<F>(), 0, 0};
    const auto see_pack = [&](const Raw& pack, int p) {
      see<All>(seen, pack.value, Weighted ? wanted.weights_at(p * N) : nullptr, from);
    };
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (k * Threads + thread < packs) see_pack(held[k], k * Threads + thread);
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
      wait_for_copy_groups<Slots>(Slots - 1 - s);
      const int p = (Packs + s) * Threads + thread;
      if (p < packs) see_pack(slots[s * Threads], p);
    }
    seen = seen_by_block<Threads, All>(seen);

    if (thread == 0) {
      losses[row] = is_ignored ? F(0) : row_loss(seen, at_target, wanted, cols, terms);
    }
    if (next < rows) target = static_cast<long long>(targets[next]);
    const RowGradient<F> gradient = row_gradient(seen, row, wanted, cols, terms);
    Raw* const dx = reinterpret_cast<Raw*>(grads + row * grad_stride);
    const auto write = [&](Raw pack, int p) {
      if (is_ignored) {
#pragma unroll
        for (int j = 0; j < N; ++j) pack.value[j] = from_compute<T>(F(0));
      } else {
        gradient.put(pack.value, p * N);
      }
      dx[p] = pack;
    };
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (k * Threads + thread < packs) write(held[k], k * Threads + thread);
    if (next < rows) request_held(following);
#pragma unroll
    for (int s = 0; s < Slots; ++s) {
      const int p = (Packs + s) * Threads + thread;
      if (p < packs) write(slots[s * Threads], p);
      if (next < rows) request_slot(following, s);  // what was there has been used
    }
    row = next;
  }
}

/// 1 / (how many targets are not ignored); one block of 1024 threads.
template <typename Target, typename F>
__global__ void __launch_bounds__(1024)
    target_scale(const Target* __restrict__ targets, long long rows, long long ignored,
                 F* __restrict__ scale) {
  long long count = 0;
#pragma unroll 2
  for (long long i = threadIdx.x; i < rows; i += 1024)
    count += static_cast<long long>(targets[i]) != ignored;
  count = block_reduce<1024>(count, Sum(), 0LL);
  if (threadIdx.x == 0) *scale = F(1) / static_cast<F>(count);
}

/// 1 / (the sum of the weights of targets that are not ignored); one block of 1024 threads.
template <typename Target, typename F>
__global__ void __launch_bounds__(1024)
    weighted_scale(const Target* __restrict__ targets, long long rows, long long ignored,
                   F* __restrict__ scale, const F* __restrict__ weights, int cols) {
  double sum = 0;
  for (long long i = threadIdx.x; i < rows; i += 1024) {
    const long long target = static_cast<long long>(targets[i]);
    if (target != ignored && target >= 0 && target < cols) sum += weights[target];
  }
  sum = block_reduce<1024>(sum, Sum(), 0.0);
  if (threadIdx.x == 0) *scale = static_cast<F>(1 / sum);
}
