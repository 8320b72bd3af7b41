// The journal over a store file.
#include "tune/session/journal.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"

#include <unistd.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

namespace kernwright {
namespace {

/// Members besides the key; they must be equal for reusing the trials of another session.
constexpr const char* kAlike[] = {"launch", "arguments", "checked", "scored"};
constexpr std::size_t kHashLetters = 16;

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

}  // namespace

SessionJournal::SessionJournal(std::string path, StoreKey key, Row about, const Space& space)
    : file_(std::move(path)),
      id_(new_id()),
      key_(std::move(key)),
      about_(std::move(about)),
      space_(space) {
  if (about_.is_null()) about_ = Row::object();
}

std::string SessionJournal::about_hash() const {
  Row members = key_.to_row();
  for (const char* name : kAlike) members["about " + std::string(name)] = about_.value(name, Row());
  const std::string text = members.dump(-1, ' ', false, Row::error_handler_t::replace);
  return Hasher().field(text).digest().to_hex().substr(0, kHashLetters);
}

std::map<std::uint64_t, Trial> SessionJournal::earlier() {
  std::map<std::uint64_t, Trial> trials;
  if (key_.source.empty()) return trials;
  const Row wanted = key_.to_row();
  const std::string about = about_hash();
  std::set<std::string> alike;
  std::set<std::string> same_limits;
  const StoreContents contents = file_.read();
  warn_lines(file_.path(), trial_problems(contents));
  const auto resume = [&](const std::string& session) {
    if (alike.insert(session).second) resumed_.push_back(session);
  };
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
    resume(session);
    if (row.value("limits", Row()) == about_.value("limits", Row())) same_limits.insert(session);
  }
  for (const Row& row : contents.rows) {
    if (row.at("kind") != "trial") continue;
    const std::string session = row.at("session");
    // Whatever became of its session's row.
    if (row.value("about", Row()) == about) resume(session);
    if (!alike.contains(session)) continue;
    auto trial = parse_trial(space_, row);
    if (!trial) continue;
    // Another limit may not end it.
    const bool may_end = trial->status == TrialStatus::timeout && !same_limits.contains(session);
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
    for (const Value& value : parameter.values) values.push_back(value_json(value));
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
  Row row = trial_row(space_, trial);
  row["about"] = about_hash();
  append(std::move(row));
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
