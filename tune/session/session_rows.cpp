// Trials and results as rows of a store, and trials back from them.
#include "tune/session/session_rows.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/store/store_key.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace kernwright {
namespace {

/// JSON has no infinities and no NaN.
Row number(double value) { return std::isfinite(value) ? Row(value) : Row(nullptr); }
Row number(const std::optional<double>& value) { return value ? number(*value) : Row(nullptr); }

Row interval(const std::optional<std::pair<double, double>>& ends) {
  if (!ends) return nullptr;
  return Row::array({number(ends->first), number(ends->second)});
}

template <typename T>
void read(const Row& row, const char* name, T& target) {
  if (const auto found = row.find(name); found != row.end() && !found->is_null())
    found->get_to(target);
}

void read(const Row& row, const char* name, std::optional<double>& target) {
  if (const auto found = row.find(name); found != row.end() && !found->is_null())
    target = found->get<double>();
}

std::optional<std::uint64_t> index_of(const Space& space, const Row& config) {
  if (!config.is_object() || config.size() != space.parameters().size()) return std::nullopt;
  Choices choices;
  for (std::size_t p = 0; p < space.parameters().size(); ++p) {
    const auto value = config.find(space.parameters()[p].name);
    if (value == config.end()) return std::nullopt;
    const auto choice = space.find_choice(p, parse_value(*value));
    if (!choice) return std::nullopt;
    choices.push_back(*choice);
  }
  return space.configurations().find(choices);
}

/// The row's data about a trial, except its configuration. Throws Row::exception.
Trial trial_members(const Row& row) {
  Trial trial;
  trial.status = find_trial_status(row.at("status").get<std::string>()).value();
  read(row, "number", trial.number);
  read(row, "error", trial.error);
  read(row, "times_ms", trial.times_ms);
  read(row, "median_ms", trial.median_ms);
  if (trial.is_correct()) read(row, "score", trial.score);
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
  return trial;
}

}  // namespace

Row config_row(const Space& space, std::uint64_t index) {
  const Choices choices = space.configurations().at(index);
  Row config = Row::object();
  for (std::size_t p = 0; p < choices.size(); ++p)
    config[space.parameters()[p].name] = value_json(space.value(p, choices[p]));
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

std::optional<Trial> parse_trial(const Space& space, const Row& row) try {
  if (!trial_misfit(row).empty()) return std::nullopt;
  const auto index = index_of(space, row.at("config"));
  if (!index) return std::nullopt;
  Trial trial = trial_members(row);
  trial.index = *index;
  return trial;
} catch (const InvalidArgument&) {
  return std::nullopt;
}

std::string trial_misfit(const Row& row) try {
  const auto config = row.find("config");
  if (config == row.end() || !config->is_object()) return "is a trial without a configuration";
  for (const auto& [name, value] : config->items()) parse_value(value);
  const auto status = row.find("status");
  if (status == row.end() || !status->is_string()) return "is a trial without a status";
  const auto& word = status->get_ref<const std::string&>();
  const auto known = find_trial_status(word);
  if (!known)
    return format("is a trial of the status \"{}\", which this library does not know", word);
  const auto score = row.find("score");
  const bool has_score = score != row.end() && score->is_number();
  if (*known == TrialStatus::correct && !has_score) return "is a correct trial without a score";
  const Trial trial = trial_members(row);
  const auto is_time = [](double time) { return time > 0; };
  if (!std::all_of(trial.times_ms.begin(), trial.times_ms.end(), is_time) ||
      (trial.median_ms && !is_time(*trial.median_ms))) {
    return "is a trial with a time of 0 or below";
  }
  return {};
} catch (const Row::exception&) {
  return "is a trial with a member of a wrong type";
} catch (const InvalidArgument&) {
  return "is a trial with an invalid value";
}

namespace {

/// Whether the space in a session's row may contain the configuration; restrictions are not
/// checked.
bool may_have(const Row& session, const Row& config) {
  const auto space = session.find("space");
  if (space == session.end() || !space->is_object()) return true;
  const auto parameters = space->find("parameters");
  if (parameters == space->end() || !parameters->is_object()) return true;
  if (parameters->size() != config.size()) return false;
  for (const auto& [name, value] : config.items()) {
    const auto values = parameters->find(name);
    if (values == parameters->end()) return false;
    if (std::find(values->begin(), values->end(), value) == values->end()) return false;
  }
  return true;
}

}  // namespace

std::vector<LineProblem> trial_problems(const StoreContents& contents) {
  std::map<std::string, const Row*> sessions;
  for (const Row& row : contents.rows) {
    if (row.at("kind") == "session") sessions[row.at("session").get<std::string>()] = &row;
  }
  std::vector<LineProblem> problems;
  for (std::size_t i = 0; i < contents.rows.size(); ++i) {
    const Row& row = contents.rows[i];
    if (row.at("kind") != "trial") continue;
    std::string what = trial_misfit(row);
    const auto session = sessions.find(row.at("session").get<std::string>());
    if (!what.empty()) {
      // told
    } else if (session == sessions.end()) {
      if (!row.contains("about"))
        what = "is a trial without the row of its session: no session can reuse it";
    } else if (!may_have(*session->second, row.at("config"))) {
      what = "is a trial of a configuration outside its session's space";
    }
    if (!what.empty()) problems.push_back({contents.lines[i], std::move(what)});
  }
  return problems;
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

}  // namespace kernwright
