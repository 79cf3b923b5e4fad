#include "core/lingua/import.h"

#include <algorithm>

#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::lingua {

void Import::take_data() {
  const Data& from = recipe_.data;
  config::DataConfig& data = experiment_.data;
  if (from.n_views != 2) {
    refuse("data.n_views",
           std::to_string(from.n_views) + " is not 2",
           "forge's rows have inputs and the targets after them");
  }
  state("data.seed",
        data.seed,
        from.seed.value_or(recipe_.seed),
        from.seed ? "" : "the recipe's seed");
  state("data.order", data.order, config::RowOrder::shuffled, "of all rows of an epoch");
  if (from.sources.empty()) {
    note("data.sources names no data: forge's generated stories stand in");
    return;
  }
  const auto heaviest =
      std::max_element(from.sources.begin(), from.sources.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      });
  if (from.sources.size() > 1) {
    std::string mixture;
    for (const auto& [folder, weight] : from.sources) {
      mixture += (mixture.empty() ? "" : ", ") + folder + " " + shortest(weight);
    }
    note("data.sources mixes " + mixture + "; forge reads one folder, here the heaviest");
  }
  const fs::path folder = fs::path(from.root_dir.value_or("")) / heaviest->first;
  state("data.source", data.source, "text");
  state("data.path", data.path, folder.lexically_normal().string(), "root_dir / source");
  if (!from.add_bos || from.add_eos) {
    note("documents begin with BOS and end without EOS; in the recipe add_bos is " +
         std::string(from.add_bos ? "true" : "false") + " and add_eos " +
         (from.add_eos ? "true" : "false"));
  }
}

void Import::take_tokenizer() {
  const Tokenizer& from = recipe_.data.tokenizer;
  config::TokenizerConfig& tokenizer = experiment_.tokenizer;
  static const std::vector<std::string> known = {"sp", "tiktoken", "bytes"};
  if (std::find(known.begin(), known.end(), from.name) == known.end()) {
    refuse_word("data.tokenizer.name", from.name, known);
  }
  const std::string kind = from.name == "sp"         ? "sentencepiece"
                           : from.name == "tiktoken" ? "tiktoken"
                                                     : "byte_level_bpe";
  state("tokenizer.kind", tokenizer.kind, kind, from.name);
  take_vocabulary();
  if (from.path) state("tokenizer.path", tokenizer.path, *from.path);
}

void Import::take_vocabulary() {
  const int own = recipe_.model.vocab_size;
  if (own == 0) refuse("model.vocab_size", "is 0", "-1 stands for the tokenizer's entries");
  if (own > 0 && options_.vocab_size > 0 && own != options_.vocab_size) {
    refuse("model.vocab_size",
           std::to_string(own) + " is not the " + std::to_string(options_.vocab_size) +
               " of --vocab-size");
  }
  int size = own > 0 ? own : options_.vocab_size;
  std::string remark;
  if (size == 0) {
    const std::string& name = recipe_.data.tokenizer.name;
    size = name == "sp" ? 32000 : name == "tiktoken" ? 128256 : 262;
    remark = name == "sp"         ? "Llama 2's"
             : name == "tiktoken" ? "Llama 3's"
                                  : "256 bytes and forge's special tokens";
    note("model.vocab_size is the tokenizer's, which is taken for " + remark + ": " +
         with_thousands(size) + "; --vocab-size gives another");
  }
  if (size < 261) {
    refuse("model.vocab_size",
           std::to_string(size) + " is less than forge's smallest tokenizer has, 261");
  }
  state("model.vocab_size", experiment_.model.vocab_size, size, remark);
  state("tokenizer.vocab_size", experiment_.tokenizer.vocab_size, size, remark);
}

}  // namespace forge::lingua
