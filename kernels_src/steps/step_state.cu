// The rows of running sequences before and after a step: the kernels gather the step's input from
// the rows, and append the step's tokens to the rows.
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
  kDrafts,
  kFollowed,
  kLongText,
  kGuesses = kFollowed,  // of rows without a draft model
};

/// What follow() has of a row that a draft model is fed, too.
constexpr int kFeeds = -1;

struct State {
  int* words;
  long long rows_at, row_words;
  int count_at, follow_at, pages_at, tokens_at, biases_at, mask_at, pages, page_size, capacity;
  int head;  ///< 1 of a head, whose entries have the token behind theirs; else 0
  int keeps_guesses;

  __device__ int active(int i) const { return words[i]; }
  __device__ int planned(int i) const { return words[count_at + i]; }
  /// What a draft model does for row i: kFeeds, or tokens that it catches up with.
  __device__ int follow(int i) const { return words[follow_at + i]; }
  __device__ int* row(int number) const { return words + rows_at + number * row_words; }
  /// Known tokens of a row that are not computed. A row whose logits were not finite has none, and
  /// computes one nevertheless.
  __device__ static int due(const int* row) { return max(row[kLength] - row[kComputed], 1); }
  /// Tokens of row i in the step: the drafts included, and at most the planned number.
  __device__ int count(int i) const {
    if (active(i) < 0) return 0;
    const int* const row = this->row(active(i));
    return min(planned(i), due(row) + row[kDrafts]);
  }
  /// Tokens of row i that a draft model catches up with.
  __device__ int behind(int i) const {
    if (active(i) < 0) return 0;
    const int* const row = this->row(active(i));
    return max(min(follow(i), row[kComputed] - row[kFollowed]), 0);
  }
  /// Entries that a head adds to row i before it writes drafts, at most `most`: the last one again
  /// where it has all.
  __device__ int lacking(int i, int most) const {
    if (active(i) < 0 || follow(i) != kFeeds) return 0;
    const int* const row = this->row(active(i));
    return min(min(max(row[kComputed] - row[kFollowed], 1), most), row[kComputed]);
  }
  /// Whether a row that computes `count` tokens has no other known one: it gets a new token.
  __device__ static bool yields(const int* row, int count) {
    return row[kComputed] + count - row[kDrafts] == row[kLength];
  }
};

/// A row has `outputs` rows of logits: for the last known token, and for each draft. A step that
/// `catches_up` belongs to a draft model, whose tokens are below `vocabulary`: kBehind, or kLacking
/// for a draft head.
struct Step {
  int *tokens, *positions, *token_rows, *adapters, *long_texts, *slots, *query_starts, *lengths,
      *last;
  int *page_table, *top_k;
  float *temperature, *top_p, *min_p, *repetition, *presence, *frequency;
  uint2* seeds;
  int* places;
  int rows, count, outputs, catches_up, vocabulary;
};

enum { kBehind = 1, kLacking = 2 };

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

/// The values of a row without a sequence: the token of the highest logit.
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

/// The number of a token for a model of a smaller vocabulary.
__device__ int token_below(int token, int vocabulary) {
  return 0 <= token && token < vocabulary ? token : 0;
}

/// Block b has row b of the step. All blocks together have the tokens behind the last one.
__global__ void __launch_bounds__(kThreads)
    begin_step(const __grid_constant__ State state, const __grid_constant__ Step step) {
  const int b = blockIdx.x;
  int lane_before = 0, lane_total = 0;
  const auto read_count = [&](int i) {
    if (step.catches_up == kLacking) return state.lacking(i, step.count / step.rows);
    return step.catches_up ? state.behind(i) : state.count(i);
  };
  for (int i = threadIdx.x; i < step.rows; i += kThreads) {
    const int count = read_count(i);
    lane_total += count;
    if (i < b) lane_before += count;
  }
  const int before = block_reduce<kThreads>(lane_before, Sum(), 0);
  const int total = block_reduce<kThreads>(lane_total, Sum(), 0);
  const int number = state.active(b);
  const int count = read_count(b);
  const int* const row = number < 0 || count == 0 ? nullptr : state.row(number);
  int computed = row == nullptr ? 0 : row[step.catches_up == kBehind ? kFollowed : kComputed];
  if (step.catches_up == kLacking) computed -= count;
  const int shift = step.catches_up ? state.head : 0;
  const int length = row == nullptr ? 0 : computed + count;
  if (threadIdx.x == 0) {
    step.query_starts[b] = before;
    if (b == 0) step.query_starts[step.rows] = total;
    step.lengths[b] = length;
  }
  const int drafts = row == nullptr || step.catches_up ? 0 : row[kDrafts];
  for (int j = threadIdx.x; j < step.outputs; j += kThreads) {
    const int to = b * step.outputs + j, behind = max(drafts - j, 0);
    step.last[to] = max(before + count - 1 - behind, 0);
    step.places[to] = length - behind + shift;
    if (row == nullptr) {
      clear_values(step, to);
    } else {
      gather_values(step, to, row);
    }
  }
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const int position = computed + i, page = row[state.pages_at + position / state.page_size];
    step.tokens[before + i] = token_below(row[state.tokens_at + position + shift], step.vocabulary);
    step.positions[before + i] = position;
    step.slots[before + i] = 1 + page * state.page_size + position % state.page_size;
    step.token_rows[before + i] = b;
    step.adapters[before + i] = row[kAdapter];
    step.long_texts[before + i] = row[kLongText];
  }
  for (int i = total + b * kThreads + threadIdx.x; i < step.count; i += step.rows * kThreads) {
    step.tokens[i] = 0;
    step.positions[i] = 0;
    step.token_rows[i] = -1;
    step.adapters[i] = -1;
    step.long_texts[i] = 0;
    step.slots[i] = 0;
  }
  const int used = (length + state.page_size - 1) / state.page_size;
  for (int i = threadIdx.x; i <= used && i < state.pages; i += kThreads)
    step.page_table[static_cast<long long>(b) * state.pages + i] =
        i < used ? row[state.pages_at + i] : -1;
}

constexpr int kDraftThreads = 256;

/// Block b drafts for row b of the step: the tokens that followed the last tokens earlier in the
/// text. The longest match wins, of `least` to `most` tokens; of equally long matches the latest.
/// At the end of the text the draft goes on with its own tokens.
__global__ void __launch_bounds__(kDraftThreads)
    draft_ngram(const __grid_constant__ State state, int least, int most) {
  const int number = state.active(blockIdx.x);
  if (number < 0) return;
  int* const row = state.row(number);
  int* const tokens = row + state.tokens_at;
  if (row[kDrafts] > 0) return;  // a guide's, with masks behind each
  const int length = row[kLength], wanted = state.planned(blockIdx.x) - State::due(row);
  int best = 0;  // tokens of a match, then the end of the match
  for (int end = 1 + threadIdx.x; wanted > 0 && end < length; end += kDraftThreads) {
    int same = 0;
    while (same < most && same < end && tokens[end - 1 - same] == tokens[length - 1 - same]) ++same;
    if (same >= least) best = max(best, same << 24 | end);
  }
  best = block_reduce<kDraftThreads>(best, Maximum(), 0);
  int end = best & 0xffffff;
  if (best == 0 && state.keeps_guesses) end = length - 1;
  if (threadIdx.x == 0) row[kDrafts] = end == 0 ? 0 : max(wanted, 0);
  if (end == 0) return;
  const int kept = state.keeps_guesses ? row[kGuesses] : 0;
  for (int i = kept + threadIdx.x; i < wanted; i += kDraftThreads)
    tokens[length + i] = tokens[end + i % (length - end)];
}

/// Block b has row b of a step of a draft model: a token each. The first ones are the last known
/// tokens; token i is draft i, which was `sampled` behind the one before and goes to the text. Rows
/// with fewer drafts, or without any place in the draft model's caches, take no part.
__global__ void __launch_bounds__(kThreads)
    feed_draft(const __grid_constant__ State state, const __grid_constant__ Step step, int i,
               const int* sampled) {
  const int b = blockIdx.x, number = state.active(b);
  int* const row = number < 0 || state.follow(b) != kFeeds ? nullptr : state.row(number);
  const int length = row == nullptr ? 0 : row[kLength], first = state.head;
  int wanted = row == nullptr ? -1 : state.planned(b) - State::due(row);
  if (row != nullptr && row[kComputed] < first) wanted = 0;  // a head has no entry to go on from
  const bool takes_part = i <= wanted;
  int* const table = step.page_table + static_cast<long long>(b) * state.pages;
  if (threadIdx.x == 0) {
    int token = 0;
    if (takes_part) {
      int* const place = row + state.tokens_at + length - 1 + i;
      if (i > 0) *place = sampled[b];
      token = token_below(*place, step.vocabulary);
    }
    step.tokens[b] = token;
    step.positions[b] = takes_part ? length - 1 + i - first : 0;
    step.token_rows[b] = takes_part ? b : -1;
    step.lengths[b] = takes_part ? length + i - first : 0;
    step.places[b] = length + i;
    if (i == first && row != nullptr) {
      row[kDrafts] = wanted;
      if (first > 0) row[kFollowed] = row[kComputed];
      gather_values(step, b, row);
    } else if (i == first) {
      clear_values(step, b);
    }
    if (!takes_part) table[0] = -1;
  }
  if (i > first || !takes_part) return;
  const int used = (length + wanted + state.page_size - 1) / state.page_size;
  for (int page = threadIdx.x; page <= used && page < state.pages; page += kThreads)
    table[page] = page < used ? row[state.pages_at + page] : -1;
}

/// The draft model has caught up with what the plan says, of the first `rows` rows.
__global__ void end_catch_up(const __grid_constant__ State state, int rows) {
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const int count = state.behind(i);
    if (count > 0) state.row(state.active(i))[kFollowed] += count;
  }
}

constexpr int kPenaltyThreads = 256;

/// Whether this is the first thread to set the bit of the token.
__device__ bool first_token(unsigned* seen, int token) {
  const unsigned bit = 1u << token % 32;
  return (atomicOr(&seen[token / 32], bit) & bit) == 0;
}

/// Block (b, j) has output j of row b of the step: drafts before the output count as known tokens.
/// Shared memory has a bit for each token of the vocabulary. Sums of equal numbers have one result
/// in any order.
__global__ void __launch_bounds__(kPenaltyThreads)
    apply_penalties(const __grid_constant__ State state, float* logits, long long logit_stride,
                    int vocabulary) {
  extern __shared__ unsigned seen[];
  const int number = state.active(blockIdx.x);
  if (number < 0) return;
  const int* const row = state.row(number);
  const int* const tokens = row + state.tokens_at;
  const int drafts = blockIdx.y, length = row[kLength] + drafts, generated = row[kPromptLength];
  if (drafts > row[kDrafts] || !State::yields(row, state.count(blockIdx.x))) return;
  const float repetition = __int_as_float(row[kRepetition]);
  const float presence = __int_as_float(row[kPresence]);
  const float frequency = __int_as_float(row[kFrequency]);
  float* const values = logits + (blockIdx.x * gridDim.y + drafts) * logit_stride;
  const auto clear = [&] {
    for (int i = threadIdx.x; i < (vocabulary + 31) / 32; i += kPenaltyThreads) seen[i] = 0;
    __syncthreads();
  };
  clear();
  for (int i = threadIdx.x; i < length; i += kPenaltyThreads) {
    const int token = tokens[i];
    if (token >= vocabulary || !first_token(seen, token)) continue;
    const float x = values[token];
    values[token] = x > 0 ? x / repetition : x * repetition;
  }
  __syncthreads();
  for (int i = generated + threadIdx.x; i < length; i += kPenaltyThreads)
    if (tokens[i] < vocabulary) atomicAdd(&values[tokens[i]], -frequency);
  clear();
  for (int i = generated + threadIdx.x; i < length; i += kPenaltyThreads)
    if (tokens[i] < vocabulary && first_token(seen, tokens[i])) values[tokens[i]] -= presence;
}

constexpr int kMaskThreads = 256;
constexpr int kMaskTokens = 4096;  // of a block

/// Block (b, i, j) has part i of the vocabulary of output j in row b of the step. Biases come
/// first: a masked token stays at -infinity for any bias.
__global__ void __launch_bounds__(kMaskThreads)
    apply_masks(const __grid_constant__ State state, float* logits, long long logit_stride,
                int vocabulary) {
  const int number = state.active(blockIdx.x);
  if (number < 0) return;
  const int* const row = state.row(number);
  if (!State::yields(row, state.count(blockIdx.x))) return;
  float* const values = logits + (blockIdx.x * gridDim.z + blockIdx.z) * logit_stride;
  const int first = blockIdx.y * kMaskTokens, end = min(first + kMaskTokens, vocabulary);
  const int* const biases = row + state.biases_at;
  for (int i = threadIdx.x; i < row[kBiased]; i += kMaskThreads) {
    const int token = biases[2 * i];
    if (token >= first && token < end) values[token] += __int_as_float(biases[2 * i + 1]);
  }
  if (!row[kMasked]) return;
  __syncthreads();
  const int mask_number = min(static_cast<int>(blockIdx.z), row[kMasked] - 1);
  const int* const mask = row + state.mask_at + mask_number * ((vocabulary + 31) / 32);
  for (int token = first + threadIdx.x; token < end; token += kMaskThreads)
    if ((mask[token / 32] >> token % 32 & 1) == 0)
      values[token] = __uint_as_float(0xff800000u);  // -infinity
}

/// The rows of the results, one for each output: a token, then details.
struct Results {
  int* words;
  const int* details;
  long long detail_stride;
  int row_words, detail_words, outputs;
};

/// What the results have in place of a token, as kNoToken and so on have it.
enum { kNoToken = -1, kNoNumber = -2, kNotTaken = -3 };

/// Block b verifies row b of the step. It accepts drafts up to the first draft that differs from
/// the sampled token, and appends the sampled token there.
__global__ void __launch_bounds__(kThreads)
    end_step(const __grid_constant__ State state, const int* sampled, const float* logits,
             long long logit_stride, const __grid_constant__ Results results) {
  const int b = blockIdx.x, first = b * results.outputs;
  int* const to = results.words + static_cast<long long>(first) * results.row_words;
  for (int i = threadIdx.x; i < results.outputs * results.row_words; i += kThreads) {
    const int j = i / results.row_words, word = i % results.row_words;
    if (word > 0 && word <= results.detail_words)
      to[i] = results.details[(first + j) * results.detail_stride + word - 1];
    else if (word == 0)
      to[i] = kNoToken;
  }
  __syncthreads();
  const int number = state.active(b);
  if (threadIdx.x > 0 || number < 0) return;
  int* const row = state.row(number);
  int* const tokens = row + state.tokens_at;
  const int count = state.count(b), drafts = row[kDrafts];
  row[kDrafts] = 0;
  if (row[kComputed] + count - drafts != row[kLength]) {
    row[kComputed] += count;
    return;
  }
  int length = row[kLength], j = 0;
  for (bool goes_on = true; goes_on; ++j) {
    const int token = sampled[first + j];
    const bool is_bad = logits != nullptr && !isfinite(logits[(first + j) * logit_stride + token]);
    to[j * results.row_words] = is_bad ? kNoNumber : token;
    goes_on = !is_bad && j < drafts && tokens[length] == token;
    if (!is_bad && length < state.capacity) tokens[length++] = token;
  }
  if (state.keeps_guesses) {
    // A step of fixed-point iteration: what the model writes behind wrong drafts is guessed next.
    const int kept = drafts > 0 ? drafts + 1 - j : max(row[kGuesses] - 1, 0);
    row[kGuesses] = min(kept, state.capacity - length);
    for (int i = 0; drafts > 0 && i < row[kGuesses]; ++i)
      tokens[length + i] = sampled[first + j + i];
  }
  // The last new token is not computed yet.
  row[kComputed] += count - drafts + j - 1;
  row[kLength] = length;
  if (state.follow(b) == kFeeds && state.head == 0) row[kFollowed] = row[kComputed];
  for (; j <= drafts; ++j) to[j * results.row_words] = kNotTaken;
}
