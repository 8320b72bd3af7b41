// Rows of trials, and back; the journal over a store file.
#include "tune/session/journal.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"

#include <unistd.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

namespace kernwright {
namespace {

/// Members besides the key in which sessions must agree for one to go on with the other's trials.
constexpr const char* kAlike[] = {"launch", "arguments", "checked"};

std::string new_id() {
  std::random_device random;
  return format("{:08x}{:08x}", random(), random());
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// JSON has no word for what is not finite.
Row number(double value) { return std::isfinite(value) ? Row(value) : Row(nullptr); }
Row number(const std::optional<double>& value) { return value ? number(*value) : Row(nullptr); }

Row interval(const std::optional<std::pair<double, double>>& ends) {
  if (!ends) return nullptr;
  return Row::array({number(ends->first), number(ends->second)});
}

template <typename T>
void read(const Row& row, const char* name, T& into) {
  if (const auto found = row.find(name); found != row.end() && !found->is_null())
    found->get_to(into);
}

void read(const Row& row, const char* name, std::optional<double>& into) {
  if (const auto found = row.find(name); found != row.end() && !found->is_null())
    into = found->get<double>();
}

std::optional<std::uint64_t> index_of(const Space& space, const Row& config) {
  if (!config.is_object() || config.size() != space.parameters().size()) return std::nullopt;
  Choices choices;
  for (std::size_t p = 0; p < space.parameters().size(); ++p) {
    const auto value = config.find(space.parameters()[p].name);
    if (value == config.end()) return std::nullopt;
    const auto choice = space.choice_of(p, value_of_json(*value));
    if (!choice) return std::nullopt;
    choices.push_back(*choice);
  }
  return space.configurations().find(choices);
}

}  // namespace

Row config_row(const Space& space, std::uint64_t index) {
  const Choices choices = space.configurations().at(index);
  Row config = Row::object();
  for (std::size_t p = 0; p < choices.size(); ++p)
    config[space.parameters()[p].name] = json_of_value(space.value(p, choices[p]));
  return config;
}

Row trial_row(const Space& space, const Trial& trial) {
  Row row{{"kind", "trial"},
          {"number", trial.number},
          {"config", config_row(space, trial.index)},
          {"status", trial_status_name(trial.status)},
          {"error", trial.error},
          {"times_ms", trial.times_ms},
          {"median_ms", number(trial.median_ms)},
          {"interval_ms", interval(trial.interval_ms)},
          {"score", number(trial.score)},
          {"metrics", Row::object()},
          {"compile_s", trial.compile_s},
          {"verify_s", trial.verify_s},
          {"measure_s", trial.measure_s},
          {"started_s", trial.started_s},
          {"compile_started_s", trial.compile_started_s},
          {"compile_ended_s", trial.compile_ended_s},
          {"ended_s", trial.ended_s},
          {"code", trial.code},
          {"resources",
           {{"registers", trial.resources.registers},
            {"shared_bytes", trial.resources.shared_bytes},
            {"local_bytes", trial.resources.local_bytes}}}};
  for (const auto& [name, value] : trial.metrics) row["metrics"][name] = number(value);
  if (trial.same_as) row["same_as"] = *trial.same_as;
  if (trial.is_resumed) row["resumed"] = true;
  if (trial.is_extra) row["extra"] = true;
  return row;
}

std::optional<Trial> trial_of_row(const Space& space, const Row& row) try {
  const auto index = index_of(space, row.at("config"));
  const auto status = find_trial_status(row.at("status").get<std::string>());
  if (!index || !status) return std::nullopt;
  Trial trial;
  trial.index = *index;
  trial.status = *status;
  read(row, "number", trial.number);
  read(row, "error", trial.error);
  read(row, "times_ms", trial.times_ms);
  read(row, "median_ms", trial.median_ms);
  read(row, "score", trial.score);
  if (const auto ends = row.find("interval_ms"); ends != row.end() && ends->is_array())
    trial.interval_ms = {ends->at(0).get<double>(), ends->at(1).get<double>()};
  if (const auto metrics = row.find("metrics"); metrics != row.end()) {
    for (const auto& [name, value] : metrics->items())
      if (value.is_number()) trial.metrics[name] = value.get<double>();
  }
  read(row, "compile_s", trial.compile_s);
  read(row, "verify_s", trial.verify_s);
  read(row, "measure_s", trial.measure_s);
  read(row, "code", trial.code);
  if (const auto used = row.find("resources"); used != row.end() && used->is_object()) {
    read(*used, "registers", trial.resources.registers);
    read(*used, "shared_bytes", trial.resources.shared_bytes);
    read(*used, "local_bytes", trial.resources.local_bytes);
  }
  if (trial.is_correct() != trial.score.has_value()) return std::nullopt;
  return trial;
} catch (const Row::exception&) {
  return std::nullopt;
} catch (const InvalidArgument&) {
  return std::nullopt;
}

Row result_row(const Space& space, const SessionResult& result) {
  Row row{{"kind", "result"},
          {"config", result.best ? config_row(space, *result.best) : Row(nullptr)},
          {"median_ms", number(result.median_ms)},
          {"interval_ms", interval(result.interval_ms)},
          {"score", number(result.score)},
          {"default_ms", number(result.default_ms)},
          {"default_score", number(result.default_score)},
          {"ties", Row::array()},
          {"noise", number(result.noise)},
          {"reason", session_end_name(result.reason)},
          {"evaluations", result.evaluations},
          {"seconds", result.seconds}};
  for (const std::uint64_t tie : result.ties) row["ties"].push_back(config_row(space, tie));
  return row;
}

SessionJournal::SessionJournal(std::string path, StoreKey key, Row about, const Space& space)
    : file_(std::move(path)),
      id_(new_id()),
      key_(std::move(key)),
      about_(std::move(about)),
      space_(space) {
  if (about_.is_null()) about_ = Row::object();
}

std::map<std::uint64_t, Trial> SessionJournal::earlier() {
  std::map<std::uint64_t, Trial> trials;
  if (key_.source.empty()) return trials;
  const Row wanted = key_.to_row();
  std::set<std::string> alike;
  std::set<std::string> same_limits;
  const StoreContents contents = file_.read();
  for (const Row& row : contents.rows) {
    if (row.at("kind") != "session") continue;
    try {
      if (StoreKey::from_row(row).to_row() != wanted) continue;
    } catch (const InvalidArgument&) {
      continue;
    }
    bool agrees = true;
    for (const char* name : kAlike) agrees &= row.value(name, Row()) == about_.value(name, Row());
    if (!agrees) continue;
    const std::string session = row.at("session");
    if (alike.insert(session).second) resumed_.push_back(session);
    if (row.value("limits", Row()) == about_.value("limits", Row())) same_limits.insert(session);
  }
  for (const Row& row : contents.rows) {
    if (row.at("kind") != "trial" || !alike.contains(row.at("session"))) continue;
    auto trial = trial_of_row(space_, row);
    if (!trial) continue;
    // Another limit may not end it.
    const bool may_end = trial->status == TrialStatus::timeout &&
                         !same_limits.contains(row.at("session").get<std::string>());
    if (!may_end) trials[trial->index] = std::move(*trial);
  }
  return trials;
}

void SessionJournal::append(Row row) {
  row["session"] = id_;
  kept_.push_back(std::move(row));
  try {
    file_.append_all(kept_);
    kept_.clear();
    failure_.clear();
  } catch (const Error& error) {
    if (failure_.empty())
      log(LogLevel::warning, "tuning goes on, its rows are kept in memory: {}", error.what());
    failure_ = error.what();
  }
}

void SessionJournal::begin() {
  Row row = about_;
  row.update(key_.to_row());
  row["kind"] = "session";
  // A session row has the whole space, and the driver with its device.
  Row parameters = Row::object();
  for (const TuningParameter& parameter : space_.parameters()) {
    Row values = Row::array();
    for (const Value& value : parameter.values) values.push_back(json_of_value(value));
    parameters[parameter.name] = std::move(values);
  }
  Row restrictions = Row::array();
  for (const Restriction& restriction : space_.restrictions())
    restrictions.push_back(restriction.label);
  row["space"] = {{"parameters", std::move(parameters)},
                  {"restrictions", std::move(restrictions)},
                  {"hash", key_.space}};
  row["device"]["driver"] = key_.driver;
  row["started"] = now_text();
  if (!resumed_.empty()) row["resumes"] = resumed_;
  append(std::move(row));
}

void SessionJournal::record(const Trial& trial) {
  if (trial.is_resumed) return;  // its row is there
  append(trial_row(space_, trial));
}

void SessionJournal::conclude(const SessionResult& result) {
  if (!result.best) return;
  Row row = key_.to_row();
  for (const char* name : {"grid", "block", "cluster", "shared_bytes", "launch", "default"})
    if (about_.contains(name)) row[name] = about_[name];
  row["restrictions"] = Row::array();
  for (const Restriction& restriction : space_.restrictions())
    if (restriction.expression) row["restrictions"].push_back(restriction.expression->text());
  row.update(result_row(space_, result));
  append(std::move(row));
}

}  // namespace kernwright
