#include "core/config/check.h"

#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::config {
namespace {

constexpr size_t longest_separator = 1024;
constexpr double smallest_share = 1e-4;  // of the weights

/// The checks of one text: of all data, or of a source of a mixture.
class TextCheck {
 public:
  /// `at` is the dotted path of the section.
  TextCheck(Draft& draft, std::string at, TextConfig& text)
      : draft_(draft), at_(std::move(at)), text_(text) {}

  void run(const PathBases& bases, const ProblemSink& on_problem) {
    using Kind = Problem::Kind;
    attempt(on_problem, Kind::disagreement, [&] { check_source(); });
    attempt(on_problem, Kind::disagreement, [&] { complete_documents(); });
    attempt(on_problem, Kind::disagreement, [&] { check_document_keys(); });
    attempt(on_problem, Kind::missing_file, [&] {
      complete_path(draft_, key("path"), text_.path, bases);
    });
    attempt(on_problem, Kind::missing_file, [&] {
      complete_path(draft_, key("evaluation_path"), text_.evaluation_path, bases);
    });
  }

 private:
  std::string key(const std::string& name) const { return at_ + "." + name; }
  bool is_generated() const { return text_.source != "text" && text_.source != "jsonl"; }

  void check_source() const {
    if (!is_generated() && text_.path.empty()) {
      const bool text = text_.source == "text";
      throw complaint(
          draft_,
          {key("source"), key("path")},
          key("source") + " is " + text_.source + ", and " + key("path") + " names no file",
          "--set " + key("path") +
              (text ? "=FILE, a text file or a folder of .txt files"
                    : "=FILE, a .jsonl file or a folder of them"));
    }
    if (is_generated() && !text_.path.empty()) {
      throw complaint(draft_,
                      {key("path"), key("source")},
                      key("path") + " is given, but " + key("source") + " is " + text_.source,
                      "files of your own are " + key("source") + " text or jsonl");
    }
  }

  /// A key of the section that says nothing because of another.
  void refuse_key(const std::string& name,
                  const std::string& because,
                  const std::string& reason,
                  const std::string& hint) {
    refuse_unused(draft_, key(name), key(because), reason, hint);
  }

  void complete_documents() {
    if (text_.source == "jsonl" && text_.documents == DocumentKind::file) {
      text_.documents = DocumentKind::record;
      derive(draft_, key("documents"), key("source"), name_of(text_.documents));
    }
    if (is_generated()) {
      const std::string reason = "has no meaning where " + key("source") + " is " + text_.source;
      const std::string hint = "files of your own are " + key("source") + " text or jsonl";
      refuse_key("documents", "source", reason, hint);
      refuse_key("evaluation_path", "source", reason, hint);
    }
    if ((text_.source == "jsonl") == (text_.documents == DocumentKind::record)) return;
    throw complaint(draft_,
                    {key("documents"), key("source")},
                    key("documents") + " " + name_of(text_.documents) + " does not go with " +
                        key("source") + " " + text_.source,
                    text_.source == "jsonl"
                        ? "a document of JSON lines is a record"
                        : "records are documents of " + key("source") + " jsonl");
  }

  void check_document_keys() {
    if (text_.source != "jsonl") {
      refuse_key("field",
                 "source",
                 "has no meaning where " + key("source") + " is " + text_.source,
                 "it names the text of a record of " + key("source") + " jsonl");
    }
    const std::string kind = name_of(text_.documents);
    if (text_.documents != DocumentKind::separator) {
      refuse_key("separator",
                 "documents",
                 "has no meaning where " + key("documents") + " is " + kind,
                 "set " + key("documents") + " separator");
    } else if (text_.separator.empty() || text_.separator.size() > longest_separator) {
      throw complaint(
          draft_,
          {key("separator")},
          key("separator") + " has " + with_thousands(int64_t(text_.separator.size())) + " bytes",
          "1 to 1,024 bytes, such as <|endoftext|>");
    }
    if (text_.documents == DocumentKind::file) {
      refuse_key("training_fraction",
                 "documents",
                 "is one of documents, and " + key("documents") + " is file",
                 "say what a document is: " + key("documents") + " line, block or separator");
    }
    if (!text_.evaluation_path.empty()) {
      refuse_key("held_out_fraction",
                 "evaluation_path",
                 "has no meaning where " + key("evaluation_path") + " is given",
                 "evaluation is on that text, all of " + key("path") + " is for training");
    }
  }

  Draft& draft_;
  std::string at_;
  TextConfig& text_;
};

/// The sources of a mixture say where text is, so the section around them must not.
void refuse_text_keys(Draft& draft) {
  for (const std::string name : {"path",
                                 "documents",
                                 "separator",
                                 "field",
                                 "training_fraction",
                                 "evaluation_path",
                                 "held_out_fraction"})
    refuse_unused(draft,
                  "data." + name,
                  "data.source",
                  "has no meaning where data.source is mixture",
                  "give it to one of data.sources: data.sources.NAME." + name);
}

/// Takes back what an earlier layer mixed, where a later one says that the data is something else.
void drop_sources(Draft& draft) {
  DataConfig& data = draft.experiment.data;
  const Setting& source = draft.origins.at("data.source").set_by;
  const std::string below = "data.sources.";
  for (auto at = draft.origins.lower_bound(below);
       at != draft.origins.end() && starts_with(at->first, below);) {
    const Setting& setting = at->second.set_by;
    if (rank(setting) >= rank(source)) {
      throw Error(at->first + " is given, but data.source is " + data.source,
                  setting.origin,
                  "data.source mixture is made of data.sources; leave data.source out");
    }
    at = draft.origins.erase(at);
  }
  data.sources.clear();
}

void check_weights(const Draft& draft) {
  const auto& sources = draft.experiment.data.sources;
  if (sources.empty()) {
    throw complaint(draft,
                    {"data.source"},
                    "data.source is mixture, and data.sources names nothing to mix",
                    "for example data.sources.mine.path and data.sources.mine.weight");
  }
  std::vector<std::string> weights;
  double sum = 0;
  for (const auto& [name, source] : sources) {
    weights.push_back("data.sources." + name + ".weight");
    sum += source.weight;
  }
  if (sum == 0) throw complaint(draft, weights, "all weights of data.sources are 0");
  for (const auto& [name, source] : sources) {
    if (source.weight == 0 || source.weight / sum >= smallest_share) continue;
    throw complaint(draft,
                    {"data.sources." + name + ".weight"},
                    "data.sources." + name + ".weight " + shortest(source.weight) +
                        " is less than one row in " + with_thousands(int64_t(1 / smallest_share)) +
                        " of all",
                    "raise it, or leave the source out with the weight 0");
  }
}

void check_mixture(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  attempt(on_problem, Kind::disagreement, [&] { refuse_text_keys(draft); });
  attempt(on_problem, Kind::wrong_value, [&] { check_weights(draft); });
  for (auto& [name, source] : draft.experiment.data.sources) {
    const std::string at = "data.sources." + name;
    // What an earlier check of the section would do, were it all of the data: see apply_layer.
    const bool by_default = draft.origins.at(at + ".source").set_by.layer == default_layer;
    if (by_default && is_json_lines(source.path)) {
      source.source = "jsonl";
      derive(draft, at + ".source", at + ".path", source.source);
    }
    attempt(on_problem, Kind::wrong_value, [&, &source = source] {
      check_word(draft, at + ".source", source.source, {"text", "jsonl", "toy_stories"});
    });
    TextCheck(draft, at, source).run(bases, on_problem);
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
        "set another tokenizer.kind: none is for tasks that generate token ids");
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
  if (e.data.source == "mixture") {
    check_mixture(draft, bases, on_problem);
  } else {
    attempt(on_problem, Kind::disagreement, [&] { drop_sources(draft); });
    TextCheck(draft, "data", e.data).run(bases, on_problem);
  }
  attempt(on_problem, Kind::missing_file, [&] {
    complete_path(draft, "tokenizer.path", e.tokenizer.path, bases);
  });
  attempt(on_problem, Kind::unsupported, [&] { check_tokenizer_kind(draft); });
}

}  // namespace forge::config
