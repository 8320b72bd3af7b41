// The loop of an engine: requests go in, tokens come out, a step at a time.
#pragma once

#include "core/graph/graph.h"
#include "core/stream.h"
#include "engine/batch.h"
#include "engine/host_pages.h"
#include "engine/inbox.h"
#include "engine/rows.h"
#include "engine/schedule.h"
#include "engine/sequence.h"
#include "engine/sequence_pages.h"
#include "engine/step.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kernwright::engine {

struct LoopOptions {
  kernels::StateLayout layout{};  ///< its vocabulary and biases are set by the loop
  std::int32_t pages = 0;         ///< of the caches
  bool prefix_cache = false;      ///< texts that begin as earlier ones share their pages
  ScheduleOptions schedule{};     ///< max_tokens is more than layout.max_rows
  std::int32_t vocabulary = 0;    ///< tokens of prompts are below it
  std::int32_t detail_words = 0;  ///< of a token, at most
  std::int32_t queue_limit = 0;   ///< requests that may wait; 0: any number
  DraftOptions drafts{};          ///< none in a deterministic engine
  std::int32_t short_length = 0;  ///< see BatchOptions
  bool graphs = true;             ///< false: each step is done anew in place of a replay
};

struct LoopStats : BatchStats {
  std::int64_t steps = 0;      ///< launched
  std::int64_t plan_ns = 0;    ///< of plans, and of taking tokens in
  std::int64_t launch_ns = 0;  ///< of calls of the driver, without waits for tokens
  std::int32_t graphs = 0;     ///< recorded
};

/// Plans steps, replays their graphs on a stream of its own, and reads the tokens of a step while
/// the next one runs. submit(), inbox(), step_age() and stats() may be called from any thread, the
/// others from one at a time.
class Loop {
 public:
  /// Records the graph of a step of that size: step().begin(), the model, a token for each row as
  /// the features say, step().end(); of the feature catch_up, only the draft model's work. Before
  /// the call the plan on the device is empty: the same work may also be run on stream(), and
  /// changes nothing then. Without LoopOptions::graphs it is called in each step and queues that
  /// work on stream(); what it returns is dropped.
  using Record = std::function<Graph(const Bucket& bucket)>;

  /// Throws InvalidArgument for limits without sense, OutOfMemory.
  Loop(Device& device, const LoopOptions& options, Record record);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const LoopOptions& options() const noexcept { return options_; }
  const Stream& stream() const noexcept { return stream_; }
  const Step& step() const noexcept { return step_; }

  /// Queues a request; its number, or 0 where as many wait as may. Throws InvalidArgument for a
  /// request too large ever to run, with the size of one to fit.
  std::uint64_t submit(Request request);
  /// Where requests come from. A cancel ends sequences with the next advance(); for a request of
  /// the past, or of none, it does nothing. There is work while there are sequences, or events for
  /// the next advance() to return.
  Inbox& inbox() noexcept { return inbox_; }

  /// Launches a step, if a sequence has something to compute, and waits for the tokens of the step
  /// before. Where all sequences wait for masks, it waits for one of them, a short time. Appends
  /// what happened to `events`. When `record` throws while it records a graph, all sequences stay
  /// as they are; after any other error they end as failed, and the loop can be used again unless
  /// the device is lost. Throws Error when another thread is in advance().
  void advance(std::vector<TokenEvent>& events);
  /// Ends all requests for that reason. Their events are appended with those not returned yet.
  /// Throws Error when another thread is in advance().
  void abandon(Finish reason, const std::string& cause, std::vector<TokenEvent>& events);
  /// Keeps copies of pages of the prefix cache in so much page-locked memory of the host. `caches`:
  /// all arrays with pages. Before the first request. Throws InvalidArgument without a prefix cache
  /// and for less memory than a page takes, OutOfMemory.
  void use_host(std::vector<Array> caches, std::size_t bytes);
  /// Records the graph of a step for so many generating rows, unless it is there. Without
  /// LoopOptions::graphs a no-op.
  void prepare(std::int32_t rows);

  /// Whether a request that was submitted and has not ended has the adapter of this slot. Throws
  /// Error when another thread is in advance().
  bool uses_adapter(std::int32_t slot);
  /// Waits for the device, and drops recorded graphs that have all of these features: what they
  /// read has moved. Throws Error when another thread is in advance().
  void drop_graphs(std::uint32_t features);

  /// The pages that the prefix cache has of the beginning of a text of this salt, as they are until
  /// the next call. Throws Error when another thread is in advance().
  std::vector<std::int32_t> cached_pages(std::span<const std::int32_t> tokens,
                                         std::uint64_t salt = 0);
  /// Adds the full pages of a text to the prefix cache: see SequencePages::restore(). `fill` queues
  /// its work on stream(). Throws Error when another thread is in advance().
  void restore_pages(std::span<const std::int32_t> tokens, const SequencePages::Fill& fill,
                     std::uint64_t salt = 0);

  /// As they were after the last call of advance(), but for requests submitted since.
  LoopStats stats() const;
  /// For how long the step in the making has not ended; nothing between steps, and while `record`
  /// runs.
  std::chrono::nanoseconds step_age() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void take_requests();
  StepPlan next_plan();
  Graph& graph_of(const Bucket& bucket);
  void launch(const StepPlan& plan);
  void queue(const Bucket& bucket);
  void read_oldest(bool is_measured);
  void end_all(Finish reason, const std::string& cause);
  void count_started();
  void publish();
  void return_events(std::vector<TokenEvent>& events);

  const LoopOptions options_;
  const Record record_;
  Stream stream_;
  Rows rows_;
  Step step_;
  Batch batch_;
  std::optional<HostPages> host_;
  std::map<Bucket, Graph> graphs_;
  std::set<Bucket> done_;  ///< sizes of steps that were done without a graph
  struct Unread {
    std::vector<StepPart> parts;
    Bucket bucket{};
    Clock::time_point launched{};
    bool is_delayed = false;  ///< by the work of a draft model
  };
  std::deque<Unread> unread_;      ///< steps with unread tokens
  Clock::time_point last_read_{};  ///< when the tokens of a step came
  std::vector<std::int32_t> active_, counts_, follows_;
  bool caught_up_ = false;  ///< behind the last step
  LoopStats stats_;
  std::int64_t started_ = 0;                  ///< requests that the inbox knows of as started
  std::atomic<std::int64_t> step_began_ = 0;  ///< 0: none is in the making

  std::mutex advancing_;
  Inbox inbox_;
  mutable std::mutex stats_mutex_;
  LoopStats published_;  ///< stats_ for other threads
};

}  // namespace kernwright::engine
