// The rows of running sequences before and after a step: what it reads is gathered from them, and
// its tokens are appended to them.
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 128;

/// Words of a row, as RowWord has them.
enum Word {
  kLength,
  kComputed,
  kTemperature,
  kTopK,
  kTopP,
  kMinP,
  kRepetition,
  kPresence,
  kFrequency,
  kPromptLength,
  kSeedLow,
  kSeedHigh,
  kBiased,
  kMasked,
  kAdapter,
};

struct State {
  int* words;
  long long rows_at, row_words;
  int count_at, pages_at, tokens_at, biases_at, mask_at, pages, page_size, capacity;

  __device__ int active(int i) const { return words[i]; }
  __device__ int count(int i) const { return active(i) < 0 ? 0 : words[count_at + i]; }
  __device__ int* row(int number) const { return words + rows_at + number * row_words; }
};

struct Step {
  int *tokens, *positions, *token_rows, *adapters, *query_starts, *lengths, *last;
  int *page_table, *top_k;
  float *temperature, *top_p, *min_p, *repetition, *presence, *frequency;
  uint2* seeds;
  int rows, count;  // of tokens
};

/// A block has a change.
__global__ void apply_changes(int* state, const int* block) {
  const int* const change = block + 3 * blockIdx.x;
  for (int i = threadIdx.x; i < change[2]; i += blockDim.x)
    state[change[0] + i] = block[change[1] + i];
}

__device__ void gather_values(const Step& step, int to, const int* row) {
  step.temperature[to] = __int_as_float(row[kTemperature]);
  step.top_k[to] = row[kTopK];
  step.top_p[to] = __int_as_float(row[kTopP]);
  step.min_p[to] = __int_as_float(row[kMinP]);
  step.repetition[to] = __int_as_float(row[kRepetition]);
  step.presence[to] = __int_as_float(row[kPresence]);
  step.frequency[to] = __int_as_float(row[kFrequency]);
  step.seeds[to] = make_uint2(row[kSeedLow], row[kSeedHigh]);
}

/// The values of a row without a sequence: its token is the one of the highest logit.
__device__ void clear_values(const Step& step, int to) {
  step.temperature[to] = 0;
  step.top_k[to] = 0;
  step.top_p[to] = 1;
  step.min_p[to] = 0;
  step.repetition[to] = 1;
  step.presence[to] = 0;
  step.frequency[to] = 0;
  step.seeds[to] = make_uint2(0, 0);
}

/// Block b has row b of the step. All blocks together have the tokens behind the last one.
__global__ void __launch_bounds__(kThreads)
    begin_step(const __grid_constant__ State state, const __grid_constant__ Step step) {
  const int b = blockIdx.x;
  int own_before = 0, own_total = 0;
  for (int i = threadIdx.x; i < step.rows; i += kThreads) {
    const int count = state.count(i);
    own_total += count;
    if (i < b) own_before += count;
  }
  const int before = block_reduce<kThreads>(own_before, Sum(), 0);
  const int total = block_reduce<kThreads>(own_total, Sum(), 0);
  const int number = state.active(b), count = state.count(b);
  const int* const row = number < 0 ? nullptr : state.row(number);
  const int computed = row == nullptr ? 0 : row[kComputed];
  const int length = row == nullptr ? 0 : computed + count;
  if (threadIdx.x == 0) {
    step.query_starts[b] = before;
    if (b == 0) step.query_starts[step.rows] = total;
    step.lengths[b] = length;
    step.last[b] = max(before + count - 1, 0);
    if (row == nullptr) {
      clear_values(step, b);
    } else {
      gather_values(step, b, row);
    }
  }
  for (int i = threadIdx.x; i < count; i += kThreads) {
    step.tokens[before + i] = row[state.tokens_at + computed + i];
    step.positions[before + i] = computed + i;
    step.token_rows[before + i] = b;
    step.adapters[before + i] = row[kAdapter];
  }
  for (int i = total + b * kThreads + threadIdx.x; i < step.count; i += step.rows * kThreads) {
    step.tokens[i] = 0;
    step.positions[i] = 0;
    step.token_rows[i] = -1;
    step.adapters[i] = -1;
  }
  const int used = (length + state.page_size - 1) / state.page_size;
  for (int i = threadIdx.x; i <= used && i < state.pages; i += kThreads)
    step.page_table[static_cast<long long>(b) * state.pages + i] =
        i < used ? row[state.pages_at + i] : -1;
}

constexpr int kPenaltyThreads = 256;

/// Whether this is the first thread to set the bit of the token.
__device__ bool first_of(unsigned* seen, int token) {
  const unsigned bit = 1u << token % 32;
  return (atomicOr(&seen[token / 32], bit) & bit) == 0;
}

/// A block has a row of the step. Its shared memory has a bit for each token of the vocabulary.
/// Sums of equal numbers have one result in any order.
__global__ void __launch_bounds__(kPenaltyThreads)
    apply_penalties(const __grid_constant__ State state, float* logits, long long logit_stride,
                    int vocabulary) {
  extern __shared__ unsigned seen[];
  const int number = state.active(blockIdx.x);
  if (number < 0) return;
  const int* const row = state.row(number);
  const int* const tokens = row + state.tokens_at;
  const int length = row[kLength], generated = row[kPromptLength];
  if (row[kComputed] + state.count(blockIdx.x) != length) return;
  const float repetition = __int_as_float(row[kRepetition]);
  const float presence = __int_as_float(row[kPresence]);
  const float frequency = __int_as_float(row[kFrequency]);
  float* const values = logits + blockIdx.x * logit_stride;
  const auto clear = [&] {
    for (int i = threadIdx.x; i < (vocabulary + 31) / 32; i += kPenaltyThreads) seen[i] = 0;
    __syncthreads();
  };
  clear();
  for (int i = threadIdx.x; i < length; i += kPenaltyThreads) {
    const int token = tokens[i];
    if (token >= vocabulary || !first_of(seen, token)) continue;
    const float x = values[token];
    values[token] = x > 0 ? x / repetition : x * repetition;
  }
  __syncthreads();
  for (int i = generated + threadIdx.x; i < length; i += kPenaltyThreads)
    if (tokens[i] < vocabulary) atomicAdd(&values[tokens[i]], -frequency);
  clear();
  for (int i = generated + threadIdx.x; i < length; i += kPenaltyThreads)
    if (tokens[i] < vocabulary && first_of(seen, tokens[i])) values[tokens[i]] -= presence;
}

constexpr int kMaskThreads = 256;
constexpr int kMaskTokens = 4096;  // of a block

/// Block (b, i) has part i of the vocabulary in row b of the step. Biases come first: a masked
/// token stays at -infinity whatever its bias.
__global__ void __launch_bounds__(kMaskThreads)
    apply_masks(const __grid_constant__ State state, float* logits, long long logit_stride,
                int vocabulary) {
  const int number = state.active(blockIdx.x);
  if (number < 0) return;
  const int* const row = state.row(number);
  if (row[kComputed] + state.count(blockIdx.x) != row[kLength]) return;
  float* const values = logits + blockIdx.x * logit_stride;
  const int first = blockIdx.y * kMaskTokens, end = min(first + kMaskTokens, vocabulary);
  const int* const biases = row + state.biases_at;
  for (int i = threadIdx.x; i < row[kBiased]; i += kMaskThreads) {
    const int token = biases[2 * i];
    if (token >= first && token < end) values[token] += __int_as_float(biases[2 * i + 1]);
  }
  if (!row[kMasked]) return;
  __syncthreads();
  const int* const mask = row + state.mask_at;
  for (int token = first + threadIdx.x; token < end; token += kMaskThreads)
    if ((mask[token / 32] >> token % 32 & 1) == 0)
      values[token] = __uint_as_float(0xff800000u);  // -infinity
}

/// The rows of the results: a token, then details.
struct Results {
  int* words;
  const int* details;
  long long detail_stride;
  int row_words, detail_words;
};

/// A thread has a row of the step.
__global__ void __launch_bounds__(kThreads)
    end_step(const __grid_constant__ State state, const int* sampled, const float* logits,
             long long logit_stride, int rows, const __grid_constant__ Results results) {
  const int b = blockIdx.x * kThreads + threadIdx.x;
  if (b >= rows) return;
  int result = -1;
  if (const int number = state.active(b); number >= 0) {
    int* const row = state.row(number);
    const int length = row[kLength], computed = row[kComputed] + state.count(b);
    row[kComputed] = computed;
    if (computed == length) {
      result = sampled[b];
      if (logits != nullptr && !isfinite(logits[b * logit_stride + result])) {
        result = -2;
      } else if (length < state.capacity) {
        row[state.tokens_at + length] = result;
        row[kLength] = length + 1;
      }
    }
  }
  int* const to = results.words + static_cast<long long>(b) * results.row_words;
  to[0] = result;
  for (int i = 0; i < results.detail_words; ++i)
    to[1 + i] = results.details[b * results.detail_stride + i];
}
