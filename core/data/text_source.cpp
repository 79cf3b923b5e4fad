#include "core/data/text_source.h"

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/data/tasks/spec.h"
#include "core/data/toy_stories.h"

namespace forge::data {

TextSource::TextSource(const config::DataConfig& config,
                       const Progress& progress,
                       const std::filesystem::path& surveys)
    : kind_(config.source) {
  if (kind_ == "toy_stories") {
    fingerprint_ = hash_hex("toy_stories " + std::to_string(toy_stories_version) + " seed " +
                            std::to_string(config.seed));
    generated_ = [seed = config.seed](Split split, uint64_t index) {
      return toy_story(seed, split, index);
    };
  } else if (config.is_task()) {
    const nlohmann::json spec = tasks::make_spec(config);
    fingerprint_ = tasks::spec_fingerprint(spec);
    generated_ = [capo = tasks::capo_of(spec)](Split split, uint64_t index) {
      return capo.biography(split, index).text;
    };
  } else if (kind_ == "text" || kind_ == "jsonl") {
    if (config.path.empty()) {
      throw Error("data.source is '" + kind_ + "', but data.path is empty",
                  {},
                  "set data.path to a file or a folder of files");
    }
    corpus_.emplace(config, progress, surveys);
    fingerprint_ = corpus_->fingerprint();
  } else {
    throw Error("unknown data.source '" + kind_ + "'", {}, "toy_stories, text, jsonl or task");
  }
}

GeneratedText TextSource::texts_of(Split split) const {
  return [this, split](uint64_t index) { return generated_(split, index); };
}

NextDocument TextSource::sample(int64_t bytes) const {
  return corpus_ ? corpus_->sample(bytes) : generated_sample(texts_of(Split::training), bytes);
}

void TextSource::write(Split split,
                       TokenAmount amount,
                       const Tokenizer& tokenizer,
                       const Progress& progress,
                       TokenFileWriter& writer) const {
  if (corpus_) {
    const bool training = split == Split::training;
    write_text(training ? corpus_->training() : corpus_->evaluation(), tokenizer, progress, writer);
  } else {
    write_generated(texts_of(split), amount, tokenizer, progress, writer);
  }
}

}  // namespace forge::data
