#include "core/config/check_data.h"

#include "core/base/text.h"
#include "core/config/complaint.h"
#include "core/config/fields.h"
#include "core/config/paths.h"

namespace forge::config {
namespace {

constexpr size_t longest_separator = 1024;

bool is_generated(const DataConfig& data) {
  return data.source != "text" && data.source != "jsonl";
}

void check_source(const Draft& draft) {
  const DataConfig& d = draft.experiment.data;
  if (!is_generated(d) && d.path.empty()) {
    const bool text = d.source == "text";
    throw complaint(draft,
                    {"data.source", "data.path"},
                    "data.source is " + d.source + ", and data.path names no file",
                    text ? "--set data.path=FILE, a text file or a folder of .txt files"
                         : "--set data.path=FILE, a .jsonl file or a folder of them");
  }
  if (is_generated(d) && !d.path.empty()) {
    throw complaint(draft,
                    {"data.path", "data.source"},
                    "data.path is given, but data.source is " + d.source,
                    "files of your own are data.source text or jsonl");
  }
}

/// A key of the section that says nothing because of another.
template <class T>
void refuse_unused_key(Draft& draft,
                       const std::string& key,
                       T DataConfig::*field,
                       const std::string& because,
                       const std::string& reason,
                       const std::string& hint) {
  static const DataConfig defaults;
  refuse_unused(draft,
                "data." + key,
                draft.experiment.data.*field,
                defaults.*field,
                "data." + because,
                reason,
                hint);
}

void complete_documents(Draft& draft) {
  DataConfig& d = draft.experiment.data;
  if (d.source == "jsonl" && d.documents == DocumentKind::file) {
    d.documents = DocumentKind::record;
    derive(draft, "data.documents", "data.source", name_of(d.documents));
  }
  if (is_generated(d)) {
    const std::string reason = "has no meaning where data.source is " + d.source;
    const std::string hint = "files of your own are data.source text or jsonl";
    refuse_unused_key(draft, "documents", &DataConfig::documents, "source", reason, hint);
    refuse_unused_key(
        draft, "evaluation_path", &DataConfig::evaluation_path, "source", reason, hint);
  }
  if ((d.source == "jsonl") == (d.documents == DocumentKind::record)) return;
  throw complaint(
      draft,
      {"data.documents", "data.source"},
      "data.documents " + name_of(d.documents) + " does not go with data.source " + d.source,
      d.source == "jsonl" ? "a document of JSON lines is a record"
                          : "records are documents of data.source jsonl");
}

void check_document_keys(Draft& draft) {
  DataConfig& d = draft.experiment.data;
  if (d.source != "jsonl") {
    refuse_unused_key(draft,
                      "field",
                      &DataConfig::field,
                      "source",
                      "has no meaning where data.source is " + d.source,
                      "it names the text of a record of data.source jsonl");
  }
  const std::string kind = name_of(d.documents);
  if (d.documents != DocumentKind::separator) {
    refuse_unused_key(draft,
                      "separator",
                      &DataConfig::separator,
                      "documents",
                      "has no meaning where data.documents is " + kind,
                      "set data.documents separator");
  } else if (d.separator.empty() || d.separator.size() > longest_separator) {
    throw complaint(draft,
                    {"data.separator"},
                    "data.separator has " + with_thousands(int64_t(d.separator.size())) + " bytes",
                    "1 to 1,024 bytes, such as <|endoftext|>");
  }
  if (d.documents == DocumentKind::file) {
    refuse_unused_key(draft,
                      "training_fraction",
                      &DataConfig::training_fraction,
                      "documents",
                      "is one of documents, and data.documents is file",
                      "say what a document is: data.documents line, block or separator");
  }
  if (!d.evaluation_path.empty()) {
    refuse_unused_key(draft,
                      "held_out_fraction",
                      &DataConfig::held_out_fraction,
                      "evaluation_path",
                      "has no meaning where data.evaluation_path is given",
                      "evaluation is on that text, all of data.path is for training");
  }
}

/// A recipe may name the tokenizer that it was made with, and leave its file to the user.
void check_tokenizer_kind(const Draft& draft) {
  const TokenizerConfig& tokenizer = draft.experiment.tokenizer;
  if (draft.experiment.data.has_own_ids()) return;
  if (tokenizer.kind == "none") {
    throw complaint(
        draft,
        {"tokenizer.kind", "data.source"},
        "tokenizer.kind is none, but data.source " + draft.experiment.data.source + " is text",
        "none is the kind of a task that has ids of its own");
  }
  if (tokenizer.kind == "byte_level_bpe" || !tokenizer.path.empty()) return;
  throw complaint(draft,
                  {"tokenizer.kind", "tokenizer.path"},
                  "tokenizer.kind is " + tokenizer.kind + ", and tokenizer.path names no file",
                  "--set tokenizer.path=FILE, or --set tokenizer.kind=byte_level_bpe, which trains "
                  "one of " +
                      with_thousands(tokenizer.vocab_size) + " entries on the data");
}

}  // namespace

void check_and_complete_data(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  Experiment& e = draft.experiment;
  attempt(on_problem, Kind::disagreement, [&] { check_source(draft); });
  attempt(on_problem, Kind::disagreement, [&] { complete_documents(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_document_keys(draft); });
  const auto complete = [&](const std::string& key, std::string& path) {
    attempt(on_problem, Kind::missing_file, [&] { complete_path(draft, key, path, bases); });
  };
  complete("data.path", e.data.path);
  complete("data.evaluation_path", e.data.evaluation_path);
  complete("tokenizer.path", e.tokenizer.path);
  attempt(on_problem, Kind::unsupported, [&] { check_tokenizer_kind(draft); });
}

}  // namespace forge::config
