// Sessions for Python. kernwright/tune/_sessions makes them comfortable; what a configuration
// means, and whether outputs are right, is asked of a Python object. Trials travel as JSON texts.
#include "base/errors.h"
#include "bindings/jit/program_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "bindings/tune/python_backend.h"
#include "bindings/values/dtype.h"
#include "bindings/worker/all_tasks.h"
#include "tune/session/journal.h"
#include "tune/session/kernel_backend.h"

#include <pybind11/stl.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

std::string format_row(const Row& row) {
  return row.dump(-1, ' ', true, Row::error_handler_t::replace);
}

Row json_argument(const std::string& text) {
  Row row = Row::parse(text, nullptr, false);
  if (row.is_discarded()) throw InvalidArgument("the text is no JSON");
  return row;
}

Dim3 extents(const py::handle& given) {
  const auto numbers = given.cast<std::vector<std::uint32_t>>();
  Dim3 result;
  if (!numbers.empty()) result.x = numbers[0];
  if (numbers.size() > 1) result.y = numbers[1];
  if (numbers.size() > 2) result.z = numbers[2];
  return result;
}

/// Fields of a dict, with the defaults of a structure where they are missing.
class Settings {
 public:
  explicit Settings(const py::dict& given) : given_(given) {}

  template <typename T>
  void read(const char* name, T& value) const {
    if (given_.contains(name) && !given_[name].is_none()) value = given_[name].cast<T>();
  }
  template <typename T>
  void read(const char* name, std::optional<T>& value) const {
    if (given_.contains(name) && !given_[name].is_none()) value = given_[name].cast<T>();
  }
  bool flag(const char* name) const { return given_.contains(name) && given_[name].cast<bool>(); }
  std::string text(const char* name) const {
    std::string result;
    read(name, result);
    return result;
  }
  py::object object(const char* name) const {
    return given_.contains(name) ? py::object(given_[name]) : py::none();
  }

 private:
  const py::dict& given_;
};

/// Asks `hooks` of Python. Its methods are called from any thread; a str as answer is a failure.
class Hooks {
 public:
  explicit Hooks(py::object hooks) : kept_(keep_alive(std::move(hooks))) {}

  template <typename Convert, typename... Arguments>
  auto call(const char* method, Convert&& convert, Arguments&&... arguments) const {
    const GilAcquire locked;
    if (!locked) throw Interrupted("the interpreter ends");
    const py::handle object(static_cast<PyObject*>(kept_.get()));
    return convert(object.attr(method)(std::forward<Arguments>(arguments)()...));
  }

  KernelPlan plan(std::uint64_t index) const {
    return call(
        "plan",
        [](const py::object& answer) {
          if (PyUnicode_Check(answer.ptr())) throw InvalidArgument(answer.cast<std::string>());
          const auto parts = answer.cast<py::tuple>();
          KernelPlan plan{.program = parts[0].cast<const ProgramObject&>().program};
          plan.name = parts[1].cast<std::string>();
          plan.grid = extents(parts[2]);
          plan.block = extents(parts[3]);
          plan.shared_bytes = parts[4].cast<std::uint32_t>();
          if (!parts[5].is_none()) plan.cluster = extents(parts[5]);
          return plan;
        },
        [&] { return py::int_(index); });
  }

  std::vector<TuningArgument> arguments(const KernelSignature& signature) const {
    return call(
        "arguments",
        [](const py::object& answer) {
          if (PyUnicode_Check(answer.ptr())) throw ArgumentError(answer.cast<std::string>());
          std::vector<TuningArgument> result;
          for (const py::handle item : answer.cast<py::list>()) {
            TuningArgument argument;
            if (PyBytes_Check(item.ptr())) {
              const auto bytes = std::as_bytes(std::span(item.cast<std::string_view>()));
              argument.value.assign(bytes.begin(), bytes.end());
            } else {
              const auto place = item.cast<std::pair<std::size_t, std::uint64_t>>();
              argument.buffer = place.first;
              argument.offset = place.second;
            }
            result.push_back(std::move(argument));
          }
          return result;
        },
        [&] { return list_parameters(signature); });
  }

  std::optional<std::string> check(std::span<const TuningOutput> outputs) const {
    return call(
        "check",
        [](const py::object& answer) -> std::optional<std::string> {
          if (answer.is_none()) return std::nullopt;
          return answer.cast<std::string>();
        },
        [&] {
          py::list list;
          for (const TuningOutput& output : outputs) {
            list.append(py::make_tuple(output.buffer,
                                       py::bytes(reinterpret_cast<const char*>(output.bytes.data()),
                                                 output.bytes.size())));
          }
          return list;
        });
  }

  /// (name, type, is a pointer, dtype or None, lanes, size) of each.
  static py::list list_parameters(const KernelSignature& signature) {
    py::list list;
    for (const Parameter& p : signature.parameters) {
      py::object dtype = py::none();
      if (p.scalar) {
        dtype = dtype_object(*p.scalar);
      } else if (!p.fields.empty()) {
        dtype = struct_dtype(p);
      }
      list.append(py::make_tuple(text_object(p.name), text_object(p.type),
                                 p.kind == ParameterKind::pointer, dtype, p.lanes, p.size));
    }
    return list;
  }

 private:
  std::shared_ptr<void> kept_;
};

class TuneSession {
 public:
  TuneSession(TuneSpace& space, const py::object& hooks, const py::dict& given)
      : hooks_(hooks), device_(device_argument(given["device"])) {
    const Settings settings(given);
    space.configurations();
    space_ = space.space;
    KernelBackendOptions backend = backend_options(settings);
    SessionOptions options = session_options(settings);
    if (const std::string path = settings.text("store"); !path.empty()) {
      journal_.emplace(path, StoreKey::from_row(json_argument(settings.text("key"))),
                       json_argument(settings.text("about")), space_);
    }
    if (const py::object remote = settings.object("backend"); !remote.is_none())
      remote_ = make_python_backend(remote);
    without_gil([&] {
      if (journal_ && settings_resume_) options.known = journal_->earlier();
      backend_.emplace(device_, std::move(backend));
      TrialBackend& chosen = remote_ ? *remote_ : *backend_;
      session_.emplace(space_, chosen, std::move(options));
      lane_.emplace(*backend_);
    });
  }

  ~TuneSession() {
    const GilRelease unlocked;  // lanes may ask Python
    session_.reset();
    lane_.reset();
    backend_.reset();
    remote_.reset();
  }

  BackendLane& lane() { return *lane_; }
  void try_once(std::uint64_t index) {
    without_gil([&] { backend_->try_once(index); });
  }
  std::vector<bool> free_outputs() {
    return without_gil([&] { return backend_->free_outputs(); });
  }
  void begin() {
    if (journal_) without_gil([&] { journal_->begin(); });
  }
  py::object next() {
    const Use use(*this);
    const Trial* const trial = without_gil([&] { return session_->next(); });
    if (trial == nullptr) return py::none();
    return py::str(trial_text(*trial));
  }
  std::string finish() {
    const Use use(*this);
    const SessionResult result = without_gil([&] {
      const SessionResult found = session_->finish();
      if (journal_ && !std::exchange(is_concluded_, true)) journal_->conclude(found);
      return found;
    });
    return format_row(result_row(space_, result));
  }
  void stop() { session_->stop(); }

  py::object ask() {
    const Use use(*this);
    const std::optional<Trial> trial = without_gil([&] { return session_->ask(); });
    if (!trial) return py::none();
    return py::str(trial_text(*trial));
  }
  std::string tell(const std::string& text) {
    const Use use(*this);
    const Row row = json_argument(text);
    Trial trial;
    trial.number = row.at("number").get<std::uint64_t>();
    trial.status = find_trial_status(row.at("status").get<std::string>()).value();
    trial.error = row.value("error", std::string());
    trial.times_ms = row.value("times_ms", std::vector<double>());
    if (row.contains("score")) trial.score = row.at("score").get<double>();
    return trial_text(without_gil([&]() -> const Trial& { return session_->tell(trial); }));
  }
  /// (rows refused by the disk, why)
  py::tuple unsaved() const {
    if (!journal_) return py::make_tuple(0, "");
    return py::make_tuple(journal_->unsaved(), text_object(journal_->failure()));
  }
  std::string id() const { return journal_ ? journal_->id() : std::string(); }

 private:
  /// One call at a time, also from callbacks.
  struct Use {
    explicit Use(TuneSession& its_session) : session(its_session) {
      if (std::exchange(session.is_used_, true))
        throw InvalidArgument(
            "the session is in use: by another thread, or by the call that asks this callback");
    }
    ~Use() { session.is_used_ = false; }
    TuneSession& session;
  };

  std::string trial_text(const Trial& trial) const { return format_row(trial_row(space_, trial)); }

  KernelBackendOptions backend_options(const Settings& settings) {
    KernelBackendOptions options;
    options.plan = [this](std::uint64_t index) { return hooks_.plan(index); };
    options.arguments = [this](const ObjectCode&, const KernelSignature& signature) {
      return hooks_.arguments(signature);
    };
    if (settings.flag("checks")) {
      options.check = [this](std::span<const TuningOutput> outputs) {
        return hooks_.check(outputs);
      };
    }
    for (const py::handle item : settings.object("buffers")) {
      const auto parts = py::reinterpret_borrow<py::tuple>(item);
      held_.push_back(parts[0].cast<py::buffer>().request());
      const py::buffer_info& info = held_.back();
      options.buffers.push_back({{static_cast<const std::byte*>(info.ptr),
                                  static_cast<std::size_t>(info.size * info.itemsize)},
                                 parts[1].cast<bool>(),
                                 parts[2].cast<bool>()});
    }
    settings.read("references", options.references);
    settings.read("free_outputs", options.free_outputs);
    if (const py::object symbols = settings.object("symbols"); !symbols.is_none()) {
      for (const auto& [name, bytes] : symbols.cast<py::dict>())
        options.symbols[name.cast<std::string>()] =
            std::as_bytes(std::span(bytes.cast<std::string_view>()));
      kept_ = keep_alive(symbols);
    }
    if (settings.flag("in_process")) options.worker.in_process = &all_worker_tasks();
    settings.read("compile_lanes", options.compile_lanes);
    settings.read("devices", options.devices);
    settings.read("worker", options.worker.command);
    if (const std::string policy = settings.text("policy"); !policy.empty())
      options.measure.policy = parse_cache_policy(policy);
    options.measure.energy = settings.flag("energy");
    return options;
  }

  SessionOptions session_options(const Settings& settings) {
    SessionOptions options;
    settings.read("seconds", options.budget.seconds);
    settings.read("evaluations", options.budget.evaluations);
    settings.read("gpu_seconds", options.budget.gpu_seconds);
    settings.read("target", options.budget.target);
    settings.read("strategy", options.strategy);
    settings.read("seed", options.seed);
    settings.read("default", options.default_index);
    settings.read("initial", options.initial);
    settings.read("window", options.window);
    settings.read("samples", options.samples);
    settings.read("compile_timeout", options.compile_deadlines.first_s);
    settings.read("run_timeout", options.run_timeout_s);
    options.compile_deadlines.floor_s =
        std::min(options.compile_deadlines.floor_s, options.compile_deadlines.first_s);
    settings_resume_ = settings.flag("resume");
    options.record = [this](const Trial& trial) {
      if (journal_) journal_->record(trial);
    };
    if (settings.flag("proposes")) {
      options.propose = [this] {
        return hooks_.call("propose", [](const py::object& answer) {
          return answer.cast<std::vector<std::uint64_t>>();
        });
      };
    }
    if (settings.flag("scores")) {
      options.score = [this](Trial& trial) {
        hooks_.call(
            "score",
            [&](const py::object& answer) {
              const auto parts = answer.cast<std::pair<std::optional<double>, std::string>>();
              trial.score = parts.first;
              const Row metrics = json_argument(parts.second);
              for (const auto& [name, value] : metrics.items())
                trial.metrics[name] = value.is_number() ? value.get<double>() : 0;
            },
            [&] { return py::str(trial_text(trial)); });
      };
    }
    if (settings.flag("events")) {
      options.lane_event = [this](const LaneEvent& event) {
        hooks_.call(
            "lane_event", [](const py::object&) {}, [&] { return py::bool_(event.is_gpu); },
            [&] { return py::bool_(event.begins); }, [&] { return py::int_(event.trial); },
            [&] { return py::float_(event.seconds); });
      };
    }
    return options;
  }

  Hooks hooks_;
  Device& device_;
  Space space_;
  std::vector<py::buffer_info> held_;
  std::shared_ptr<void> kept_;
  bool settings_resume_ = false;
  bool is_concluded_ = false;
  bool is_used_ = false;  ///< changed with the GIL held
  std::optional<SessionJournal> journal_;
  std::optional<KernelBackend> backend_;
  std::unique_ptr<TrialBackend> remote_;  ///< instead of it
  std::optional<BackendLane> lane_;       ///< of it, for trials on behalf of another process
  std::optional<Session> session_;
};

}  // namespace

void bind_tune_session(py::module_& m) {
  py::class_<BackendLane>(m, "TuneLane")
      .def("load", &BackendLane::load)
      .def("verify", &BackendLane::verify)
      .def("sample", &BackendLane::sample)
      .def("forget", &BackendLane::forget);
  py::class_<TuneSession>(m, "TuneSession")
      .def_property_readonly("lane", &TuneSession::lane)
      .def(py::init<TuneSpace&, const py::object&, const py::dict&>())
      .def("try_once", &TuneSession::try_once)
      .def("free_outputs", &TuneSession::free_outputs)
      .def("begin", &TuneSession::begin)
      .def("next", &TuneSession::next)
      .def("finish", &TuneSession::finish)
      .def("stop", &TuneSession::stop)
      .def("ask", &TuneSession::ask)
      .def("tell", &TuneSession::tell)
      .def("unsaved", &TuneSession::unsaved)
      .def_property_readonly("id", &TuneSession::id);
}

}  // namespace kernwright::python
