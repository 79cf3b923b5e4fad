#include "core/run/remarks.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/protocol/json_fields.h"
#include "core/protocol/messages.h"

namespace forge::run {
namespace {

constexpr size_t most_of_tag = 64;
constexpr size_t most_of_note = protocol::max_text_bytes;

}  // namespace

template <class Visitor>
void fields(Visitor& visit, Remarks& remarks) {
  visit.optional("archived", remarks.archived);
  visit.optional("note", remarks.note);
  visit.optional("tags", remarks.tags);
}

nlohmann::json to_json(const Remarks& remarks) { return protocol::write_fields(remarks); }

Remarks read_remarks(const RunFolder& folder) {
  const fs::path file = folder.remarks_file();
  std::error_code missing;
  if (!fs::exists(file, missing)) return {};
  try {
    Remarks remarks =
        protocol::read_fields<Remarks>(parse_json(read_file(file)), "remarks of a run");
    for (const std::string& tag : remarks.tags) require_tag(tag);
    return remarks;
  } catch (const nlohmann::json::exception& problem) {
    throw Error("'" + file.string() + "' is no JSON: " + problem.what(),
                {},
                "remove the file: it holds note and tags alone",
                ExitCode::failed);
  } catch (const Error& problem) {
    throw Error("'" + file.string() + "': " + problem.message(),
                {},
                "remove the file: it holds note and tags alone",
                ExitCode::failed);
  }
}

void write_remarks(const RunFolder& folder, Remarks remarks) {
  if (remarks.note.size() > most_of_note)
    throw Error("the note is longer than " + std::to_string(most_of_note) + " bytes");
  for (const std::string& tag : remarks.tags) require_tag(tag);
  const std::set<std::string> sorted(remarks.tags.begin(), remarks.tags.end());
  remarks.tags.assign(sorted.begin(), sorted.end());
  if (!remarks.archived && remarks.note.empty() && remarks.tags.empty()) {
    remove_tree(folder.remarks_file());
    return;
  }
  write_file_atomic(folder.remarks_file(), json_text(to_json(remarks), 2) + "\n");
}

void require_tag(const std::string& tag) {
  const bool plain = std::all_of(tag.begin(), tag.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string("-_./:").find(c) != std::string::npos;
  });
  if (plain && !tag.empty() && tag.size() <= most_of_tag && tag[0] != '-') return;
  throw Error("'" + tag + "' is no tag",
              {},
              "letters, digits, '-', '_', '.', '/' and ':', at most " +
                  std::to_string(most_of_tag) + ", not beginning with '-'");
}

}  // namespace forge::run
