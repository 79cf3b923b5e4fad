#include "core/data/text_source.h"

#include "core/base/error.h"
#include "core/base/hash.h"

namespace forge::data {

TextSource::TextSource(const config::DataConfig& config, const Progress& progress)
    : kind_(config.source), seed_(config.seed) {
  if (kind_ == "toy_stories") {
    fingerprint_ = hash_hex("toy_stories " + std::to_string(toy_stories_version) + " seed " +
                            std::to_string(config.seed));
    return;
  }
  if (kind_ != "text" && kind_ != "jsonl") {
    throw Error("unknown data.source '" + kind_ + "'", {}, "toy_stories, text or jsonl");
  }
  if (config.path.empty()) {
    throw Error("data.source is '" + kind_ + "', but data.path is empty",
                {},
                "set data.path to a file or a folder of files");
  }
  corpus_.emplace(config, progress);
  fingerprint_ = corpus_->fingerprint();
}

NextDocument TextSource::sample(int64_t bytes) const {
  return corpus_ ? corpus_->sample(bytes) : toy_stories_sample(seed_, bytes);
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
    write_toy_stories(seed_, split, amount, tokenizer, progress, writer);
  }
}

}  // namespace forge::data
