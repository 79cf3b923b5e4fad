#include "core/model/weights/checkpoint.h"

#include <fcntl.h>
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/parallel.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/model/weights/dtype.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int manifest_version = 1;
constexpr uintmax_t largest_manifest = 64'000'000;

Json file_entry(const fs::path& path, const OnBytes& on_bytes) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw system_error("read '" + path.string() + "'", error.value());
  return {{"bytes", bytes}, {"hash", hash_file(path, on_bytes)}};
}

/// The one way of writing a manifest, so that a reader can ask for exactly these bytes.
std::string text_of(const Json& manifest) {
  const Json whole = {{"manifest", manifest}, {"hash", hash_hex(json_text(manifest))}};
  return json_text(whole, 2) + "\n";
}

std::string bounded_text(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error)
    throw Error(std::string(manifest_file) + " cannot be read: " + error.message())
        .with_cause(error.value());
  if (bytes > largest_manifest) throw Error(std::string(manifest_file) + " is impossibly large");
  return read_file(path);
}

/// The inner object of a manifest whose every byte is as forge wrote it.
Json checked_object(const std::string& text) {
  const Json whole = read_json_text(text);
  const auto manifest = whole.is_object() ? whole.find("manifest") : whole.end();
  if (manifest == whole.end() || text_of(*manifest) != text) {
    throw Error(std::string(manifest_file) + " is not what was written");
  }
  return *manifest;
}

void check_version(const Json& manifest) {
  const int version = manifest.value("version", 0);
  if (version == manifest_version) return;
  throw Error(std::string(manifest_file) + " has version " + std::to_string(version) +
                  " and this program reads version " + std::to_string(manifest_version),
              "it was written by another version of forge");
}

/// A name must not lead out of the folder.
void check_name(const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string("/\0", 2)) == std::string::npos;
  if (!plain) throw Error(std::string(manifest_file) + " lists '" + name + "', which is no file");
}

void check_file(const fs::path& path, const Json& entry, FileCheck check) {
  const std::string name = path.filename().string();
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw Error(name + " cannot be read: " + error.message()).with_cause(error.value());
  const auto expected = entry.at("bytes").get<uintmax_t>();
  if (bytes != expected) {
    throw Error(name + " has " + std::to_string(bytes) + " bytes instead of " +
                std::to_string(expected));
  }
  if (check == FileCheck::content && hash_file(path) != entry.at("hash").get<std::string>()) {
    throw Error("the content of " + name + " is not what was written");
  }
}

CheckpointState read_manifest(const fs::path& folder, FileCheck check) {
  const Json manifest = checked_object(bounded_text(folder / manifest_file));
  try {
    check_version(manifest);
    for (const auto& [name, entry] : manifest.at("files").items()) {
      check_name(name);
      if (check != FileCheck::none) check_file(folder / name, entry, check);
    }
    const Json& state = manifest.at("state");
    CheckpointState read;
    state.at("step").get_to(read.step);
    state.at("rows_served").get_to(read.rows_served);
    state.at("elapsed_seconds").get_to(read.elapsed_seconds);
    // Checkpoints of earlier versions of forge have neither.
    read.identity = state.value("identity", "");
    if (state.contains("eval_loss") && !state.at("eval_loss").is_null())
      read.eval_loss = state.at("eval_loss").get<double>();
    read.extra = state.at("extra");
    return read;
  } catch (const Json::exception&) {
    throw Error(std::string(manifest_file) + " lacks a part, or has one of another kind");
  }
}

}  // namespace

std::string manifest_text(const CheckpointState& state,
                          const fs::path& folder,
                          const std::vector<std::string>& files,
                          const OnBytes& on_bytes) {
  Json entries = Json::object();
  for (const std::string& file : files) entries[file] = file_entry(folder / file, on_bytes);
  const Json loss = state.eval_loss ? Json(*state.eval_loss) : Json(nullptr);
  const Json written_state = {{"step", state.step},
                              {"rows_served", state.rows_served},
                              {"elapsed_seconds", state.elapsed_seconds},
                              {"identity", state.identity},
                              {"eval_loss", loss},
                              {"extra", state.extra}};
  return text_of({{"version", manifest_version}, {"state", written_state}, {"files", entries}});
}

namespace {

/// Folders get such a name when they are whole: one that lacks a file is damaged, not unfinished.
bool is_checkpoint(const fs::path& folder) { return checkpoint_step(folder) && is_folder(folder); }

/// The folder with the lowest eval_loss, the later of two equal ones; "" where none has any.
fs::path best_of(const std::vector<fs::path>& folders) {
  fs::path best;
  double lowest = std::numeric_limits<double>::infinity();
  for (const fs::path& folder : folders) {
    try {
      const std::optional<double> loss = read_checkpoint_state(folder, FileCheck::none).eval_loss;
      if (!loss || !(*loss <= lowest)) continue;
      lowest = *loss;
      best = folder;
    } catch (const Error&) {
      // What cannot be read is not the best.
    }
  }
  return best;
}

/// Whether nobody knows what is in it at the moment.
bool is_closed(const fs::path& folder) {
  try {
    read_checkpoint_state(folder, FileCheck::none);
  } catch (const Error& error) {
    return is_unreadable(error);
  }
  return false;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw system_error("list '" + folder.string() + "'", error.value());
  }
  return entries;
}

/// The files directly in a folder, by name. Throws Error where there is anything else: a link might
/// lead anywhere.
std::vector<std::string> plain_files_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code unreadable;
    if (!fs::is_regular_file(fs::symlink_status(entry, unreadable)))
      throw Error("'" + shown_path(entry) + "' is no plain file", ExitCode::failed);
    names.push_back(entry.filename().string());
  }
  return names;
}

/// Of checkpoints, oldest first, those that are not to be kept.
std::vector<fs::path> surplus_of(const std::vector<fs::path>& folders, const Retention& retention) {
  if (retention.newest < 0)
    throw Error("cannot keep " + std::to_string(retention.newest) + " checkpoints");
  const fs::path best = retention.best ? best_of(folders) : fs::path();
  const size_t kept = std::min(folders.size(), static_cast<size_t>(retention.newest));
  std::vector<fs::path> surplus;
  for (size_t i = 0; i + kept < folders.size(); ++i) {
    const bool is_kept = folders[i] == best ||
                         (retention.is_needed && retention.is_needed(folders[i])) ||
                         (retention.best && is_closed(folders[i]));  // it may be the best
    if (!is_kept) surplus.push_back(folders[i]);
  }
  return surplus;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  return digits;
}

std::optional<int64_t> checkpoint_step(const fs::path& folder) {
  const std::string name = folder.filename().string();
  constexpr size_t most_digits = 18;  // of which every number fits
  if (name.empty() || name.size() > most_digits ||
      name.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const int64_t step = std::stoll(name);
  return name == checkpoint_name(step) ? std::optional<int64_t>(step) : std::nullopt;
}

namespace {

/// The folder of a run's checkpoints, held open: no link in its place is followed, nor one in that
/// of the run's folder.
PinnedFolder pinned_checkpoints(const fs::path& checkpoints) {
  return pinned_below(checkpoints, 2);
}

/// The same of one checkpoint.
PinnedFolder pinned_checkpoint(const fs::path& folder) { return pinned_below(folder, 3); }

void seal(const fs::path& folder, const CheckpointState& state) {
  if (path_exists(folder / manifest_file)) return;
  const std::vector<std::string> files = plain_files_of(folder);
  write_file_atomic(folder / manifest_file, manifest_text(state, folder, files));
}

}  // namespace

void seal_checkpoint(const fs::path& folder, const CheckpointState& state) {
  if (is_folder(folder)) seal(pinned_checkpoint(folder).path(), state);
}

namespace {

void make_checkpoints(const fs::path& checkpoints) {
  require_own_folder(checkpoints);
  if (fs::exists(checkpoints)) return;
  // Of this folder alone: a run folder that somebody removed must not come back.
  std::error_code failure;
  fs::create_directory(checkpoints, failure);
  if (failure) throw system_error("make '" + checkpoints.string() + "'", failure.value());
  if (checkpoints.has_parent_path()) sync_path(checkpoints.parent_path());
}

/// While training goes on: another run's checkpoint that has filled the disk goes.
constexpr Patience patience = {1, 4}, no_patience = {};

constexpr const char* shared_prefix = "shared-";

/// The step of a folder that several processes write; none for another.
std::optional<int64_t> shared_step(const fs::path& folder) {
  const std::string prefix = std::string(aside_prefix) + shared_prefix;
  const std::string name = folder.filename().string();
  return starts_with(name, prefix) ? checkpoint_step(name.substr(prefix.size())) : std::nullopt;
}

/// An empty file by which a process says that its part is written and synced.
fs::path mark_of(const fs::path& shared, int rank) {
  return shared / ("written-" + std::to_string(rank));
}

void wait_for_others(const fs::path& shared,
                     const CheckpointPart& first,
                     const std::function<bool()>& gives_up) {
  for (int rank = 1; rank < first.count; ++rank) {
    const fs::path mark = mark_of(shared, rank);
    while (!fs::exists(mark)) {
      if (gives_up()) throw Error("process " + std::to_string(rank) + " has not written its part");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    remove_tree(mark);
  }
}

}  // namespace

fs::path shared_folder(const fs::path& checkpoints, int64_t step) {
  return checkpoints / (std::string(aside_prefix) + shared_prefix + checkpoint_name(step));
}

void remove_shared_folders(const fs::path& checkpoints) {
  // A file in the folder's place is an error where the first checkpoint is written.
  if (!is_folder(checkpoints)) return;
  const PinnedFolder held = pinned_checkpoints(checkpoints);
  for (const fs::path& entry : entries_of(held.path())) {
    if (shared_step(entry)) remove_tree(entry);
  }
}

fs::path write_checkpoint(const fs::path& checkpoints,
                          const CheckpointState& state,
                          const std::map<std::string, TensorView>& weights,
                          const std::map<std::string, TensorView>& optimizer,
                          int64_t* bytes,
                          const OnBytes& on_bytes) {
  const auto never = [] { return false; };
  return write_checkpoint_part(
      checkpoints, state, whole_parts(weights), whole_parts(optimizer), {}, never, bytes, on_bytes);
}

fs::path write_checkpoint_part(const fs::path& checkpoints,
                               const CheckpointState& state,
                               const std::map<std::string, TensorPart>& weights,
                               const std::map<std::string, TensorPart>& optimizer,
                               const CheckpointPart& part,
                               const std::function<bool()>& gives_up,
                               int64_t* bytes,
                               const OnBytes& on_bytes) {
  if (state.step < 0) throw Error("a checkpoint cannot be of step " + std::to_string(state.step));
  make_checkpoints(checkpoints);
  const PinnedFolder held = pinned_checkpoints(checkpoints);
  const fs::path folder = held.path() / checkpoint_name(state.step);
  const bool is_alone = part.count == 1;
  const fs::path aside = is_alone ? aside_path(folder) : shared_folder(held.path(), state.step);
  try {
    if (is_alone) remove_tree(aside);
    make_own_folders(held.path(), aside.filename());
    const PinnedFolder written(held.path(), aside.filename());
    const fs::path& in = written.path();
    int64_t total = 0;
    const auto write_file = [&](const char* name, const auto& tensors) {
      // A checkpoint of one process is written anew as a whole: what waits for room takes none.
      const auto goes_on = [&] { return !gives_up(); };
      call_patiently(is_alone ? no_patience : patience, goes_on, [&] {
        total += write_safetensors_part(in / name, tensors, part.is_first(), on_bytes);
      });
    };
    write_file(weights_file, weights);
    write_file(optimizer_file, optimizer);
    if (part.is_first()) {
      wait_for_others(in, part, gives_up);
      const std::string manifest =
          manifest_text(state, in, {weights_file, optimizer_file}, on_bytes);
      write_file_atomic(in / manifest_file, manifest);
      replace_folder(aside, folder);
      held.require_at(checkpoints);
      total += static_cast<int64_t>(manifest.size());
    } else {
      // The last that is done with the folder: the first process may rename it from now on.
      open_own_file(mark_of(in, part.rank), O_WRONLY | O_CREAT);
    }
    if (bytes) *bytes = total;
  } catch (...) {
    std::error_code ignored;                    // the first error is the one to tell
    if (is_alone) remove_tree(aside, ignored);  // others may be writing there
    throw;
  }
  return checkpoints / folder.filename();
}

namespace {

/// Somebody may have renamed or copied a whole checkpoint.
void require_named_step(const fs::path& folder, const CheckpointState& state) {
  const std::optional<int64_t> named = checkpoint_step(folder);
  if (!named || named == state.step) return;
  throw Error("it is the one of step " + std::to_string(state.step) + ", under the name of step " +
                  std::to_string(*named),
              "rename the folder to " + checkpoint_name(state.step) +
                  ", or remove it if there is one of that name");
}

/// `opened`: the same folder, held open.
CheckpointState read_state(const fs::path& folder, const fs::path& opened, FileCheck check) {
  try {
    CheckpointState state = read_manifest(opened, check);
    require_named_step(folder, state);
    return state;
  } catch (const Error& error) {
    const char* const fault = is_unreadable(error) ? "' cannot be read: " : "' is damaged: ";
    throw Error("checkpoint '" + shown_path(folder) + fault + error.message(),
                error.hint(),
                ExitCode::failed)
        .with_cause(error.cause());
  }
}

}  // namespace

CheckpointState read_checkpoint_state(const fs::path& folder, FileCheck check) {
  return read_state(folder, folder, check);
}

std::optional<int64_t> misnamed_step(const fs::path& folder, FileCheck check) {
  try {
    const int64_t step = read_manifest(folder, check).step;
    if (checkpoint_step(folder) != step) return step;
  } catch (const Error&) {
    // A damaged one is of no step.
  }
  return std::nullopt;
}

void acknowledge_checkpoint(const fs::path& folder, const CheckpointState& state) {
  if (!is_folder(folder)) {
    throw Error("there is no folder '" + shown_path(folder) + "'",
                "a worker writes the folder aside, syncs it, renames it, and only then tells of it",
                ExitCode::failed);
  }
  const PinnedFolder held = pinned_checkpoint(folder);
  seal(held.path(), state);
  const CheckpointState found = read_state(folder, held.path(), FileCheck::size);
  if (!found.identity.empty() && found.identity != state.identity)
    throw Error(
        "checkpoint '" + shown_path(folder) + "' is of another run, with key " + found.identity,
        ExitCode::failed);
  open_own_file(held.path() / acknowledged_file, O_WRONLY | O_CREAT);
  held.require_at(folder);
}

bool is_acknowledged(const fs::path& folder) { return is_file(folder / acknowledged_file); }

std::vector<fs::path> list_checkpoints(const fs::path& checkpoints) {
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries_of(checkpoints)) {
    if (is_checkpoint(entry)) folders.push_back(entry);
  }
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    return checkpoint_step(a) < checkpoint_step(b);
  });
  return folders;
}

std::vector<fs::path> surplus_checkpoints(const fs::path& checkpoints, const Retention& retention) {
  return surplus_of(list_checkpoints(checkpoints), retention);
}

namespace {

/// Renames the folder first: one that is half removed must not look like a checkpoint.
void remove_checkpoint(const fs::path& folder) {
  const fs::path aside = aside_path(folder, "old");
  rename_path(folder, aside);
  remove_tree(aside);
}

}  // namespace

std::optional<FileLock> hold_checkpoint(const fs::path& folder) {
  std::optional<FileLock> lock = FileLock::try_share(folder / manifest_file);
  return lock && lock->is_at(folder / manifest_file) ? std::move(lock) : std::nullopt;
}

void remove_surplus_checkpoints(const fs::path& checkpoints,
                                const Retention& retention,
                                int64_t last_step) {
  if (!is_folder(checkpoints)) return;
  const PinnedFolder held = pinned_checkpoints(checkpoints);
  std::vector<fs::path> folders;  // by the names that others know them by
  for (const fs::path& folder : list_checkpoints(held.path()))
    folders.push_back(checkpoints / folder.filename());
  while (!folders.empty() && *checkpoint_step(folders.back()) > last_step) folders.pop_back();
  for (const fs::path& each : surplus_of(folders, retention)) {
    const fs::path folder = held.path() / each.filename();
    if (fs::is_symlink(folder)) continue;  // it is no checkpoint of forge's
    const PinnedFolder surplus(held.path(), folder.filename());
    const auto lock = FileLock::try_acquire(surplus.path() / manifest_file);
    if (lock) remove_checkpoint(folder);  // else it is being read, and goes the next time
  }
}

void remove_abandoned_checkpoints(const fs::path& checkpoints, int64_t last_step) {
  if (!is_folder(checkpoints)) return;
  const PinnedFolder held = pinned_checkpoints(checkpoints);
  for (const fs::path& folder : list_checkpoints(held.path())) {
    if (*checkpoint_step(folder) > last_step) remove_checkpoint(folder);
  }
  for (const fs::path& entry : entries_of(held.path())) {
    const bool is_next = shared_step(entry).value_or(0) > last_step;  // other processes are ahead
    if (starts_with(entry.filename().string(), aside_prefix) && !is_next) remove_tree(entry);
  }
}

namespace {

/// What is left to go on from.
std::string earlier_ones(const fs::path& checkpoints) {
  try {
    const std::vector<fs::path> folders = list_checkpoints(checkpoints);
    if (!folders.empty()) return "checkpoint " + folders.back().filename().string() + " is whole";
  } catch (const Error&) {
    // What hinders writing may hinder reading, too.
  }
  return "there is none before it";
}

WrittenCheckpoint write(const fs::path& checkpoints,
                        const CheckpointState& state,
                        const CheckpointWriter::Tensors& weights,
                        const CheckpointWriter::Tensors& optimizer,
                        const CheckpointPart& part,
                        const std::function<bool()>& gives_up,
                        std::atomic<int64_t>& bytes_handled,
                        std::atomic<double>& room_wait) {
  WrittenCheckpoint written;
  written.step = state.step;
  std::optional<double> full_since;
  const auto goes_on = [&] {
    const double now = steady_seconds();
    if (!full_since) full_since = now;
    room_wait = std::min(1.0, (now - *full_since) / patience.seconds());
    return !gives_up();
  };
  const auto write_once = [&] {
    bytes_handled = 0;
    room_wait = -1;
    const auto on_bytes = [&](int64_t bytes) { bytes_handled += bytes; };
    written.folder = write_checkpoint_part(
        checkpoints, state, weights, optimizer, part, gives_up, &written.bytes, on_bytes);
  };
  try {
    call_patiently(part.count == 1 ? patience : no_patience, goes_on, write_once);
    if (part.is_first()) remove_abandoned_checkpoints(checkpoints, state.step);
  } catch (const Error& error) {
    throw Error("the checkpoint of step " + std::to_string(state.step) +
                    " could not be written: " + error.message(),
                earlier_ones(checkpoints) + "; " +
                    (error.hint().empty() ? "make room and start the run again" : error.hint()),
                ExitCode::storage);
  }
  return written;
}

/// The bytes of these parts, which one process writes, and of whole tensors, if it hashes them.
int64_t bytes_to_handle(const CheckpointWriter::Tensors& tensors, bool hashes) {
  size_t bytes = 0;
  for (const auto& [name, part] : tensors)
    bytes += part.bytes + (hashes ? bytes_of(part.dtype, part.shape).value_or(0) : 0);
  return static_cast<int64_t>(bytes);
}

}  // namespace

void CheckpointWriter::start(CheckpointState state, Tensors weights, Tensors optimizer) {
  if (is_busy()) throw Error("a checkpoint is being written already");
  bytes_to_handle_ =
      bytes_to_handle(weights, part_.is_first()) + bytes_to_handle(optimizer, part_.is_first());
  bytes_handled_ = 0;
  // Where this process may start no more threads, take_written writes it.
  pending_ = run_beside([this,
                         state = std::move(state),
                         weights = std::move(weights),
                         optimizer = std::move(optimizer)] {
    return write(
        checkpoints_,
        state,
        weights,
        optimizer,
        part_,
        [this] { return gives_up_.load(); },
        bytes_handled_,
        room_wait_);
  });
}

double CheckpointWriter::fraction() const {
  if (bytes_to_handle_ == 0) return 1;
  return std::min(1.0, double(bytes_handled_) / double(bytes_to_handle_));
}

std::optional<double> CheckpointWriter::room_wait() const {
  const double wait = room_wait_;
  return wait < 0 ? std::nullopt : std::optional(wait);
}

std::optional<WrittenCheckpoint> CheckpointWriter::take_written(double seconds) {
  if (!is_busy()) return std::nullopt;
  const std::chrono::duration<double> patience(seconds);
  if (pending_.wait_for(patience) == std::future_status::timeout) return std::nullopt;
  return pending_.get();
}

}  // namespace forge::weights
