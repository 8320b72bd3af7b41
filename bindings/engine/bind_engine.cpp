// The loop of language models for Python: requests in, tokens out, graphs recorded by a callback.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/engine/token_list.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/launch/graph_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "engine/loop.h"
#include "engine/runner.h"

#include <pybind11/stl.h>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

using engine::Features;
using engine::Finish;
using engine::TokenEvent;

/// Python's loop. The callback that records is an argument of each call, not a member: it refers to
/// the owner of the loop, and a cycle through C++ would never be freed.
struct LoopObject {
  LoopObject(Device& device, const engine::LoopOptions& options) {
    loop = std::make_unique<engine::Loop>(device, options, [this](const engine::Bucket& bucket) {
      const GilAcquire held;
      if (!held || record == nullptr)
        throw Error("a step cannot be recorded: the interpreter ends");
      return record_step(bucket);
    });
    runner = std::make_unique<engine::Runner>(*loop);
  }
  LoopObject(const LoopObject&) = delete;
  LoopObject& operator=(const LoopObject&) = delete;
  ~LoopObject() {
    const GilRelease unlocked;
    runner.reset();
    loop.reset();
  }

  std::unique_ptr<engine::Loop> loop;
  std::unique_ptr<engine::Runner> runner;
  PyObject* record = nullptr;      ///< during a call
  bool serves = false;             ///< within serve()
  std::vector<TokenEvent> events;  ///< that were not returned yet

 private:
  Graph record_step(const engine::Bucket& bucket) const {
    try {
      const py::object made = py::handle(record)(
          bucket.rows, bucket.tokens, (bucket.features & Features::random) != 0,
          (bucket.features & Features::penalties) != 0, (bucket.features & Features::details) != 0,
          (bucket.features & Features::masks) != 0, (bucket.features & Features::adapters) != 0,
          bucket.drafts, (bucket.features & Features::catch_up) != 0);
      return find_graph(made);
    } catch (py::error_already_set& error) {
      // An exception of Python must not outlive the lock, unless its caller holds it again.
      if (serves) throw Error(error.what());
      throw;
    }
  }
};

/// Names the callback while it lives.
class RecordScope {
 public:
  RecordScope(LoopObject& self, const py::object& record)
      : self_(self), before_(std::exchange(self.record, record.ptr())) {}
  ~RecordScope() { self_.record = before_; }
  RecordScope(const RecordScope&) = delete;
  RecordScope& operator=(const RecordScope&) = delete;

 private:
  LoopObject& self_;
  PyObject* before_;
};

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::none:
      break;
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::cancelled:
      return "cancelled";
    case Finish::timeout:
      return "timeout";
    case Finish::bad_guide:
      return "bad_guide";
    case Finish::bad_logits:
      return "bad_logits";
    case Finish::failed:
      return "failed";
  }
  return nullptr;
}

/// (request, choice, token or None, reason of the end or None, details or None, tokens of the
/// prompt found in the prefix cache, error, drafts checked so far, accepted ones) for each event.
py::list list_events(const std::vector<TokenEvent>& events) {
  py::list list;
  for (const TokenEvent& event : events) {
    const char* const finish = finish_name(event.finish);
    list.append(
        py::make_tuple(event.request, event.choice,
                       event.token < 0 ? py::object(py::none()) : py::object(py::int_(event.token)),
                       finish == nullptr ? py::object(py::none()) : py::object(py::str(finish)),
                       event.details.empty() ? py::object(py::none()) : py::cast(event.details),
                       event.shared, event.error, event.drafted, event.accepted));
  }
  return list;
}

py::list take_events(LoopObject& self) { return list_events(std::exchange(self.events, {})); }

py::list advance(LoopObject& self, const py::object& record) {
  const RecordScope scope(self, record);
  {
    const GilRelease unlocked;
    self.loop->advance(self.events);
  }
  return take_events(self);
}

/// Advances until nothing is left. Python's signals are looked at several times a second.
py::list run(LoopObject& self, const py::object& record) {
  const RecordScope scope(self, record);
  while (self.loop->inbox().has_work()) {
    {
      const GilRelease unlocked;
      const auto begin = std::chrono::steady_clock::now();
      while (self.loop->inbox().has_work() &&
             std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50))
        self.loop->advance(self.events);
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  return take_events(self);
}

/// Runs the loop until close() or the loss of its device; the message of the loss. An exception of
/// `between` is for sys.unraisablehook.
std::string serve(LoopObject& self, const py::object& record, const py::object& between) {
  const RecordScope scope(self, record);
  self.serves = true;
  const GilRelease unlocked;
  return self.runner->run([&] {
    const GilAcquire held;
    if (!held) return;
    try {
      between();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a call between the steps of an engine");
    }
  });
}

/// The events of serve(), or None behind the last.
py::object take(LoopObject& self, double seconds) {
  std::vector<TokenEvent> events;
  const auto limit = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  const bool more = without_gil([&] { return self.runner->take(events, limit); });
  if (!more) return py::none();
  return list_events(events);
}

/// Bits of tokens, in bytes of whole words.
engine::TokenMask mask_argument(const LoopObject& self, std::string_view data) {
  if (data.size() % sizeof(std::uint32_t) != 0)
    throw InvalidArgument(format("a mask has whole words of 4 bytes, not {} bytes", data.size()));
  std::vector<std::uint32_t> words(data.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), data.data(), data.size());
  return {self.loop->options().vocabulary, words};
}

void set_mask(LoopObject& self, std::uint64_t request, std::int32_t choice,
              const std::vector<py::bytes>& masks, std::int32_t produced,
              std::vector<std::int32_t> drafts) {
  if (masks.size() != 1 + drafts.size())
    throw InvalidArgument(format("there is a mask in front of {} drafts and behind each, not {}",
                                 drafts.size(), masks.size()));
  engine::Inbox::NextMask next = {request, choice, mask_argument(self, masks.front()), produced,
                                  std::move(drafts)};
  for (const py::bytes& each : std::span(masks).subspan(1))
    next.masks.push_back(mask_argument(self, each));
  const GilRelease unlocked;
  self.loop->inbox().set_mask(std::move(next));
}

std::uint64_t submit(LoopObject& self, const py::object& prompt, std::int32_t max_tokens,
                     std::int32_t min_tokens, std::vector<std::int32_t> stop_tokens,
                     std::int32_t choices, const std::map<std::string, float>& sampling,
                     std::int32_t top_k, std::uint64_t seed, bool details,
                     const std::map<std::int32_t, float>& logit_bias,
                     std::optional<std::vector<std::int32_t>> allowed_tokens,
                     std::vector<std::int32_t> bad_tokens, std::int32_t priority, std::string user,
                     std::optional<double> timeout, const std::optional<py::bytes>& mask,
                     std::int32_t adapter, std::uint64_t salt) {
  engine::Request request;
  request.prompt = prompt_tokens(prompt);
  request.max_tokens = max_tokens;
  request.min_tokens = min_tokens;
  request.stop_tokens = std::move(stop_tokens);
  request.choices = choices;
  request.wants_details = details;
  for (const auto& [token, value] : logit_bias)
    request.constraints.biases.push_back({token, value});
  request.constraints.allowed_tokens = std::move(allowed_tokens);
  request.constraints.bad_tokens = std::move(bad_tokens);
  request.priority = priority;
  request.user = std::move(user);
  request.adapter = adapter;
  request.salt = salt;
  if (timeout)
    request.deadline = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(static_cast<std::int64_t>(*timeout * 1e9));
  if (mask) request.first_mask = mask_argument(self, std::string_view(*mask));
  engine::Sampling& values = request.sampling;
  values.top_k = top_k;
  values.seed = seed;
  const std::map<std::string, float*> places = {
      {"temperature", &values.temperature},
      {"top_p", &values.top_p},
      {"min_p", &values.min_p},
      {"repetition_penalty", &values.repetition_penalty},
      {"presence_penalty", &values.presence_penalty},
      {"frequency_penalty", &values.frequency_penalty},
  };
  for (const auto& [name, value] : sampling) {
    const auto place = places.find(name);
    if (place == places.end()) throw InvalidArgument("no value of sampling is called " + name);
    *place->second = value;
  }
  return without_gil([&] { return self.loop->submit(std::move(request)); });
}

py::dict arrays(const LoopObject& self, std::int32_t rows, std::int32_t tokens,
                std::int32_t drafts) {
  kernels::StepArrays step = self.loop->step().arrays(rows, tokens, drafts);
  py::dict named;
  const auto add = [&](const char* name, Array& array) {
    named[name] = new_array_object(std::move(array));
  };
  add("tokens", step.tokens);
  add("positions", step.positions);
  add("token_rows", step.token_rows);
  add("adapters", step.adapters);
  add("long_texts", step.long_texts);
  add("slots", step.slots);
  add("query_starts", step.query_starts);
  add("lengths", step.lengths);
  add("last", step.last);
  add("places", step.places);
  add("page_table", step.page_table);
  add("temperature", step.temperature);
  add("top_k", step.top_k);
  add("top_p", step.top_p);
  add("min_p", step.min_p);
  add("repetition_penalty", step.repetition_penalty);
  add("presence_penalty", step.presence_penalty);
  add("frequency_penalty", step.frequency_penalty);
  add("seeds", step.seeds);
  return named;
}

void draft(const LoopObject& self, std::int32_t rows) {
  const Stream stream = current_stream(self.loop->stream().device());
  const GilRelease unlocked;
  self.loop->step().draft(rows, self.loop->options().drafts.lengths, stream);
}

void feed_draft(const LoopObject& self, std::int32_t rows, std::int32_t number,
                const py::object& sampled) {
  const std::optional<Array> tokens = optional_operand(sampled, "sampled");
  const Stream stream = current_stream(self.loop->stream().device());
  const GilRelease unlocked;
  self.loop->step().feed_draft(rows, number, tokens ? &*tokens : nullptr,
                               self.loop->options().drafts.vocabulary, stream);
}

void begin_catch_up(const LoopObject& self, std::int32_t rows, std::int32_t tokens, bool extends) {
  const Stream stream = current_stream(self.loop->stream().device());
  const GilRelease unlocked;
  self.loop->step().begin_catch_up(rows, tokens, self.loop->options().drafts.vocabulary, stream,
                                   extends);
}

void end_catch_up(const LoopObject& self, std::int32_t rows) {
  const Stream stream = current_stream(self.loop->stream().device());
  const GilRelease unlocked;
  self.loop->step().end_catch_up(rows, stream);
}

void begin(const LoopObject& self, std::int32_t rows, std::int32_t tokens, std::int32_t drafts) {
  const Stream stream = current_stream(self.loop->stream().device());
  const GilRelease unlocked;
  self.loop->step().begin(rows, tokens, stream, drafts);
}

void penalize(const LoopObject& self, const py::object& logits, std::int32_t rows) {
  const Array values = array_operand(logits, "logits");
  on_current_stream(
      values, [&](const Stream& stream) { self.loop->step().penalize(values, rows, stream); });
}

void mask(const LoopObject& self, const py::object& logits, std::int32_t rows) {
  const Array values = array_operand(logits, "logits");
  on_current_stream(values,
                    [&](const Stream& stream) { self.loop->step().mask(values, rows, stream); });
}

void end(const LoopObject& self, const py::object& sampled, std::int32_t rows,
         const py::object& logits, const py::object& details) {
  const Array tokens = array_operand(sampled, "sampled");
  const std::optional<Array> read = optional_operand(logits, "logits");
  const std::optional<Array> beside = optional_operand(details, "details");
  on_current_stream(tokens, [&](const Stream& stream) {
    self.loop->step().end(tokens, rows, read ? &*read : nullptr, beside ? &*beside : nullptr,
                          stream);
  });
}

/// `fill(first, pages)` is called with the lock held: its calls of the driver give it up.
void restore_pages(LoopObject& self, const std::vector<std::int32_t>& tokens,
                   const py::function& fill, std::uint64_t salt) {
  const auto called = [&](std::int32_t first, std::span<const std::int32_t> pages) {
    fill(first, std::vector<std::int32_t>(pages.begin(), pages.end()));
  };
  self.loop->restore_pages(tokens, called, salt);
}

void use_host(LoopObject& self, const py::list& caches, std::size_t bytes) {
  std::vector<Array> arrays;
  for (const py::handle each : caches)
    arrays.push_back(array_operand(py::reinterpret_borrow<py::object>(each), "caches"));
  const GilRelease unlocked;
  self.loop->use_host(std::move(arrays), bytes);
}

py::dict stats(const LoopObject& self) {
  const engine::LoopStats found = self.loop->stats();
  py::dict named;
  named["steps"] = found.steps;
  named["tokens"] = found.tokens;
  named["prompt_tokens"] = found.prompt_tokens;
  named["plan_seconds"] = static_cast<double>(found.plan_ns) * 1e-9;
  named["launch_seconds"] = static_cast<double>(found.launch_ns) * 1e-9;
  named["graphs"] = found.graphs;
  named["drafts"] = found.drafts;
  named["drafted_tokens"] = found.drafted_tokens;
  named["accepted_tokens"] = found.accepted_tokens;
  named["rows"] = found.rows;
  named["running"] = found.running;
  named["waiting"] = found.waiting;
  named["started"] = found.started;
  named["finished"] = found.finished;
  named["aborted"] = found.aborted;
  named["failed"] = found.failed;
  named["free_pages"] = found.free_pages;
  named["used_pages"] = found.used_pages;
  named["cached_pages"] = found.cached_pages;
  named["host_pages"] = found.host_pages;
  named["saved_pages"] = found.saved_pages;
  named["loaded_pages"] = found.loaded_pages;
  named["shared_tokens"] = found.shared_tokens;
  named["preemptions"] = found.preemptions;
  named["recomputed_tokens"] = found.recomputed_tokens;
  return named;
}

}  // namespace

void bind_engine(py::module_& m) {
  m.def("_count_valid_tokens", &count_valid_tokens, py::arg("tokens"), py::arg("vocabulary"));
  py::class_<LoopObject>(m, "_EngineLoop")
      .def(py::init([](std::int32_t max_rows, std::int32_t capacity, std::int32_t page_size,
                       std::int32_t pages, std::int32_t max_tokens, std::int32_t vocabulary,
                       std::int32_t detail_words, bool deterministic, bool any_rows,
                       bool prefix_cache, std::int32_t queue_limit, std::int32_t draft_tokens,
                       std::int32_t draft_shortest, std::int32_t draft_longest, bool draft_always,
                       std::int32_t draft_context, std::int32_t draft_vocabulary, bool draft_head,
                       bool draft_guesses, std::int32_t short_length, bool graphs,
                       const py::object& device) {
             const engine::LoopOptions options = {
                 .layout = {.max_rows = max_rows, .capacity = capacity, .page_size = page_size},
                 .pages = pages,
                 .prefix_cache = prefix_cache,
                 .schedule = {.max_tokens = max_tokens,
                              .deterministic = deterministic,
                              .any_rows = any_rows},
                 .vocabulary = vocabulary,
                 .detail_words = detail_words,
                 .queue_limit = queue_limit,
                 .drafts = {.tokens = draft_tokens,
                            .lengths = {draft_shortest, draft_longest},
                            .always = draft_always,
                            .context = draft_context,
                            .vocabulary = draft_vocabulary,
                            .is_head = draft_head,
                            .keeps_guesses = draft_guesses},
                 .short_length = short_length,
                 .graphs = graphs};
             Device& chosen = device_argument(device);
             return without_gil([&] { return std::make_unique<LoopObject>(chosen, options); });
           }),
           py::kw_only(), py::arg("max_rows"), py::arg("capacity"), py::arg("page_size"),
           py::arg("pages"), py::arg("max_tokens"), py::arg("vocabulary"),
           py::arg("detail_words") = 0, py::arg("deterministic") = false,
           py::arg("any_rows") = false, py::arg("prefix_cache") = false, py::arg("queue_limit") = 0,
           py::arg("draft_tokens") = 0, py::arg("draft_shortest") = 1, py::arg("draft_longest") = 1,
           py::arg("draft_always") = false, py::arg("draft_context") = 0,
           py::arg("draft_vocabulary") = 0, py::arg("draft_head") = false,
           py::arg("draft_guesses") = false, py::arg("short_length") = 0, py::arg("graphs") = true,
           py::arg("device") = py::none())
      .def_property_readonly("stream", [](const LoopObject& self) { return self.loop->stream(); })
      .def("submit", &submit, py::arg("prompt"), py::kw_only(), py::arg("max_tokens"),
           py::arg("min_tokens") = 0, py::arg("stop_tokens") = std::vector<std::int32_t>(),
           py::arg("choices") = 1, py::arg("sampling") = std::map<std::string, float>(),
           py::arg("top_k") = 0, py::arg("seed") = 0, py::arg("details") = false,
           py::arg("logit_bias") = std::map<std::int32_t, float>(),
           py::arg("allowed_tokens") = py::none(),
           py::arg("bad_tokens") = std::vector<std::int32_t>(), py::arg("priority") = 0,
           py::arg("user") = "", py::arg("timeout") = py::none(), py::arg("mask") = py::none(),
           py::arg("adapter") = -1, py::arg("salt") = 0)
      .def("set_mask", &set_mask, py::arg("request"), py::arg("choice"), py::arg("masks"),
           py::arg("produced"), py::arg("drafts") = std::vector<std::int32_t>())
      .def(
          "cancel",
          [](LoopObject& self, std::uint64_t request, std::int32_t choice, bool stopped,
             const std::string& error) {
            const Finish reason = !error.empty() ? Finish::bad_guide
                                  : stopped      ? Finish::stop
                                                 : Finish::cancelled;
            self.loop->inbox().cancel({request, choice, reason, error});
          },
          py::arg("request"), py::kw_only(), py::arg("choice") = -1, py::arg("stopped") = false,
          py::arg("error") = "")
      .def_property_readonly("has_work",
                             [](const LoopObject& self) { return self.loop->inbox().has_work(); })
      .def("advance", &advance)
      .def("run", &run)
      .def("serve", &serve)
      .def("interrupt", [](LoopObject& self) { self.runner->interrupt(); })
      .def("take", &take)
      .def("close", [](LoopObject& self) { self.runner->close(); })
      .def_property_readonly("step_age",
                             [](const LoopObject& self) {
                               return static_cast<double>(self.loop->step_age().count()) * 1e-9;
                             })
      .def("prepare",
           [](LoopObject& self, std::int32_t rows, const py::object& record) {
             const RecordScope scope(self, record);
             const GilRelease unlocked;
             self.loop->prepare(rows);
           })
      .def("uses_adapter",
           [](LoopObject& self, std::int32_t slot) { return self.loop->uses_adapter(slot); })
      .def("drop_graphs",
           [](LoopObject& self, bool all) {
             const GilRelease unlocked;
             self.loop->drop_graphs(all ? 0 : Features::adapters);
           })
      .def("cached_pages", [](LoopObject& self, const std::vector<std::int32_t>& tokens,
                              std::uint64_t salt) { return self.loop->cached_pages(tokens, salt); })
      .def("restore_pages", &restore_pages)
      .def("use_host", &use_host)
      .def("arrays", &arrays, py::arg("rows"), py::arg("tokens"), py::arg("drafts") = 0)
      .def("draft", &draft)
      .def("feed_draft", &feed_draft, py::arg("rows"), py::arg("number"),
           py::arg("sampled") = py::none())
      .def("begin_catch_up", &begin_catch_up, py::arg("rows"), py::arg("tokens"),
           py::arg("extends") = false)
      .def("end_catch_up", &end_catch_up)
      .def("begin", &begin, py::arg("rows"), py::arg("tokens"), py::arg("drafts") = 0)
      .def("penalize", &penalize)
      .def("mask", &mask)
      .def("end", &end, py::arg("sampled"), py::arg("rows"), py::arg("logits") = py::none(),
           py::arg("details") = py::none())
      .def("stats", &stats);
}

}  // namespace kernwright::python
