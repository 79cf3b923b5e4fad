#include "core/run/annotations.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/staging.h"
#include "core/run/queue/owners.h"
#include "core/worker/json_fields.h"
#include "core/worker/plausible.h"

namespace forge::run {

using Json = nlohmann::json;

namespace {

constexpr size_t max_tag_bytes = 64;
constexpr size_t max_note_bytes = worker::max_text_bytes;

}  // namespace

template <class Visitor>
void fields(Visitor& visit, Annotations& annotations) {
  visit.optional("archived", annotations.archived);
  visit.optional("note", annotations.note);
  visit.optional("tags", annotations.tags);
}

nlohmann::json to_json(const Annotations& annotations) { return worker::write_fields(annotations); }

Annotations read_annotations(const RunFolder& folder) {
  const fs::path file = folder.annotations_file();
  if (!path_exists(file)) return {};
  try {
    const Json json = read_json_file(file);
    if (json.is_discarded()) throw Error("it is not JSON");
    Annotations annotations = worker::read_fields<Annotations>(json, "notes and tags of a run");
    for (const std::string& tag : annotations.tags) check_tag(tag);
    return annotations;
  } catch (const Error& problem) {
    throw Error("'" + file.string() + "': " + problem.message(),
                is_unreadable(problem) ? problem.hint()
                                       : "remove the file: it holds the run's note and tags, and "
                                         "whether it is archived",
                ExitCode::failed)
        .with_cause(problem.cause());
  }
}

void write_annotations(const RunFolder& folder, Annotations annotations) {
  require_own_folder(folder.path());
  if (annotations.note.size() > max_note_bytes)
    throw Error("the note is longer than " + std::to_string(max_note_bytes) + " bytes");
  for (const std::string& tag : annotations.tags) check_tag(tag);
  const std::set<std::string> sorted(annotations.tags.begin(), annotations.tags.end());
  annotations.tags.assign(sorted.begin(), sorted.end());
  if (!annotations.archived && annotations.note.empty() && annotations.tags.empty()) {
    remove_tree(folder.annotations_file());
    return;
  }
  // Whoever may read the run may know what is said of it, whatever this user's umask is.
  std::error_code unreadable;
  const fs::perms readers = fs::symlink_status(folder.record_file(), unreadable).permissions();
  queue::write_own_files(
      folder.path(),
      {{folder.annotations_file().filename(), json_text(to_json(annotations), 2) + "\n"}},
      unreadable ? fs::perms::none : readers);
}

void check_tag(const std::string& tag) {
  const bool plain = std::all_of(tag.begin(), tag.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string("-_./:").find(c) != std::string::npos;
  });
  if (plain && !tag.empty() && tag.size() <= max_tag_bytes && tag[0] != '-') return;
  throw Error("'" + tag + "' is no tag",
              "letters, digits, '-', '_', '.', '/' and ':', at most " +
                  std::to_string(max_tag_bytes) + ", not beginning with '-'");
}

}  // namespace forge::run
