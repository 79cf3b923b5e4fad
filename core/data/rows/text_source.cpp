#include "core/data/rows/text_source.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/data/corpus/document_reader.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tasks/task_spec.h"

namespace forge::data {
namespace {

constexpr uint64_t texts_at_once = 256;  // about a quarter of a megabyte
constexpr const char* tokenizing_phase = "tokenizing";

/// Some documents' tokens, and where the text behind them begins.
struct Encoded {
  std::vector<int32_t> ids;
  std::vector<int64_t> documents;  ///< their places in ids
  TextPosition end;

  void begin_document() { documents.push_back(static_cast<int64_t>(ids.size())); }
};

std::string note_of(TextPosition position) {
  return json_text(nlohmann::json{{"file", position.file}, {"offset", position.offset}});
}

TextPosition position_of(const std::string& note) {
  const nlohmann::json json = parse_json(note);
  return {json.at("file").get<int64_t>(), json.at("offset").get<int64_t>()};
}

/// Appends to a writer and saves its work now and then.
class SavingWriter {
 public:
  SavingWriter(TokenFileWriter& writer, int64_t save_every)
      : writer_(writer), save_every_(save_every), saved_(writer.size()) {}

  void append(const Encoded& encoded) {
    writer_.append(encoded.ids.data(), encoded.ids.size(), encoded.documents);
    if (writer_.size() - saved_ < save_every_) return;
    writer_.save(note_of(encoded.end));
    saved_ = writer_.size();
  }

 private:
  TokenFileWriter& writer_;
  int64_t save_every_;
  int64_t saved_;
};

Encoded encode(const TextFiles& files, const TextChunk& chunk, const Tokenizer& tokenizer) {
  Encoded encoded;
  encoded.end = chunk.end;
  encoded.ids.reserve(chunk.text.size() / 3);
  for (size_t i = 0; i < chunk.parts.size(); ++i) {
    const std::string text = document_text(files, chunk, i);
    const TextChunk::Part& part = chunk.parts[i];
    if (part.begins_document) {
      encoded.begin_document();
      tokenizer.append_beginning(text, encoded.ids);
    } else {
      tokenizer.append_continuation(text, encoded.ids);
    }
    if (part.ends_document) tokenizer.append_end(encoded.ids);
  }
  return encoded;
}

}  // namespace

void write_generated(const GeneratedText& text_of,
                     TokenAmount amount,
                     const Tokenizer& tokenizer,
                     const Progress& progress,
                     TokenFileWriter& writer,
                     int64_t save_every) {
  int64_t text = writer.resumed_from().empty() ? 0 : position_of(writer.resumed_from()).offset;
  SavingWriter saving(writer, save_every);
  const auto is_enough = [&] {
    return writer.size() >= amount.tokens && writer.documents() >= amount.documents;
  };
  const auto next = [&] {
    const int64_t first = text;
    text += texts_at_once;
    return std::optional(first);
  };
  const auto make = [&](int64_t first) {
    Encoded encoded;
    encoded.end = {0, first + static_cast<int64_t>(texts_at_once)};
    for (int64_t i = first; i < encoded.end.offset; ++i) {
      encoded.begin_document();
      tokenizer.append_document(text_of(static_cast<uint64_t>(i)), encoded.ids);
    }
    return encoded;
  };
  const auto take = [&](const Encoded& encoded) {
    saving.append(encoded);
    const auto part = [](int64_t done, int64_t wanted) {
      return wanted > 0 ? static_cast<double>(done) / static_cast<double>(wanted) : 1.0;
    };
    const double fraction =
        std::min(part(writer.size(), amount.tokens), part(writer.documents(), amount.documents));
    if (progress) progress(std::min(1.0, fraction), tokenizing_phase);
    return !is_enough();
  };
  if (!is_enough()) ordered_pipeline(next, make, take);
}

void write_text(const TextRange& range,
                const Tokenizer& tokenizer,
                const Progress& progress,
                TokenFileWriter& writer,
                int64_t save_every) {
  const std::string& note = writer.resumed_from();
  const TextCut cut = [&](std::string_view text, size_t from) {
    return tokenizer.next_safe_cut(text, from);
  };
  ChunkReader reader(range, cut, note.empty() ? std::nullopt : std::optional(position_of(note)));
  SavingWriter saving(writer, save_every);
  const int64_t before = range.files->bytes_before(range.begin);
  const auto total = static_cast<double>(std::max<int64_t>(1, range.bytes()));
  const auto next = [&] { return reader.next(); };
  const auto make = [&](const TextChunk& chunk) { return encode(*range.files, chunk, tokenizer); };
  const auto take = [&](const Encoded& encoded) {
    saving.append(encoded);
    const int64_t done = range.files->bytes_before(encoded.end) - before;
    if (progress) progress(static_cast<double>(done) / total, tokenizing_phase);
    return true;
  };
  ordered_pipeline(next, make, take);
}

TextSource::TextSource(const config::DataConfig& config,
                       const Progress& progress,
                       const IndexFolder& index)
    : kind_(config.source) {
  if (kind_ == "toy_stories") {
    fingerprint_ = hash_hex("toy_stories " + std::to_string(toy_stories_version) + " seed " +
                            std::to_string(config.seed));
    generated_ = [seed = config.seed](Split split, uint64_t number) {
      return toy_story(seed, split, number);
    };
  } else if (config.is_task()) {
    const nlohmann::json spec = tasks::make_spec(config);
    fingerprint_ = tasks::spec_fingerprint(spec);
    generated_ = [capo = tasks::capo_of(spec)](Split split, uint64_t number) {
      return capo.biography(split, number).text;
    };
  } else if (kind_ == "text" || kind_ == "jsonl") {
    if (config.path.empty()) {
      throw Error("data.source is '" + kind_ + "', but data.path is empty",
                  "set data.path to a file or a folder of files");
    }
    corpus_.emplace(config, progress, index);
    fingerprint_ = corpus_->fingerprint();
  } else {
    throw Error("unknown data.source '" + kind_ + "'", "toy_stories, text, jsonl or task");
  }
}

std::string text_folder_name(const std::string& kind, const std::string& fingerprint) {
  return kind + "-" + fingerprint;
}

TextSource TextSource::gone(const config::DataConfig& config, std::string fingerprint) {
  TextSource source;
  source.kind_ = config.source;
  source.config_ = config;
  source.fingerprint_ = std::move(fingerprint);
  return source;
}

void TextSource::require_there() const {
  if (corpus_ || generated_) return;
  const DocumentRule rule = document_rule(config_);
  for (const std::string& path : {config_.path, config_.evaluation_path})
    if (!path.empty()) list_text_files(path, rule);  // says which of them is not there
  throw Error("'" + shown_path(config_.path) + "' has just come back", "try again");
}

GeneratedText TextSource::texts_of(Split split) const {
  return [this, split](uint64_t at) { return generated_(split, at); };
}

NextDocument TextSource::sample(int64_t bytes) const {
  require_there();
  if (corpus_) {
    return [next = corpus_->sample(bytes), corpus = &*corpus_](std::string& document) mutable {
      if (next(document)) return true;
      corpus->require_unchanged();
      return false;
    };
  }
  return [text_of = texts_of(Split::training), bytes, index = uint64_t{0}](
             std::string& document) mutable {
    if (bytes <= 0) return false;
    document = text_of(index++);
    bytes -= static_cast<int64_t>(document.size());
    return true;
  };
}

void TextSource::write(Split split,
                       TokenAmount amount,
                       const Tokenizer& tokenizer,
                       const Progress& progress,
                       TokenFileWriter& writer) const {
  require_there();
  if (corpus_) {
    const bool training = split == Split::training;
    write_text(training ? corpus_->training() : corpus_->evaluation(), tokenizer, progress, writer);
    corpus_->require_unchanged();
  } else {
    write_generated(texts_of(split), amount, tokenizer, progress, writer);
  }
}

}  // namespace forge::data
