#include "core/data/tokenizer_file.h"

#include "core/base/fs.h"
#include "core/data/sentencepiece_model.h"
#include "core/data/tiktoken_file.h"
#include "core/data/tokenizer_json.h"

namespace forge::data {

Tokenizer read_tokenizer_file(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || content[first] == '{') return load_tokenizer(path);
  if (looks_like_tiktoken(content)) return load_tiktoken(path);
  return load_sentencepiece(path);
}

}  // namespace forge::data
