#include "core/data/tokenizer/tokenizer_file.h"

#include <charconv>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_json.h"

namespace forge::data {

void append_merges_of_tokens(const std::vector<int32_t>& tokens, Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (vocabulary.special[id]) continue;
    // No text gives a byte token where a character token has the same byte.
    if (vocabulary.is_byte(id) && vocabulary.alphabet == Alphabet::characters) continue;
    ids.emplace(token, id);
  }
  vocabulary.ranked_by_token = true;
  for (const int32_t id : tokens) {
    const std::string_view token = vocabulary.tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      const auto right = ids.find(token.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      vocabulary.merges.push_back({left->second, right->second, id});
    }
  }
}

namespace {

constexpr int special_token_count = 256;

/// Value of a digit of Base64 (RFC 4648); -1: it is none.
int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const int digit = digit_of(text[i]);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    const size_t held = 6 * (i + 1) - 8 * bytes.size();
    if (held >= 8) bytes += static_cast<char>(bits >> (held - 8) & 0xff);
  }
  return bytes;
}

struct RankedToken {
  std::string bytes;
  int32_t rank;
};

std::optional<RankedToken> parse_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::optional<std::string> bytes = from_base64(line.substr(0, space));
  int32_t rank = -1;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + space + 1, end, rank);
  if (!bytes || error != std::errc() || stop != end || rank < 0) return std::nullopt;
  return RankedToken{*bytes, rank};
}

std::string_view next_line(std::string_view& content) {
  const size_t end = std::min(content.find('\n'), content.size());
  std::string_view line = content.substr(0, end);
  content.remove_prefix(std::min(end + 1, content.size()));
  if (ends_with(line, "\r")) line.remove_suffix(1);
  return line;
}

bool begins_as_ranks(std::string_view content) {
  return parse_line(next_line(content)).has_value();
}

/// The tokens by rank. Ranks are ids, so none may be left out or taken twice.
void read_ranks(std::string_view content, Vocabulary& vocabulary) {
  std::unordered_map<std::string, int32_t> seen;
  for (int line_number = 1; !content.empty(); ++line_number) {
    const std::string_view line = next_line(content);
    if (line.empty() && content.empty()) break;
    const auto fail = [&](const std::string& reason) {
      throw Error("line " + std::to_string(line_number) + " " + reason);
    };
    const std::optional<RankedToken> token = parse_line(line);
    if (!token) fail("is not a token in Base64, a space, and its rank");
    if (token->rank != vocabulary.size()) {
      fail("has the rank " + std::to_string(token->rank) + " where " +
           std::to_string(vocabulary.size()) + " follows");
    }
    if (!seen.emplace(token->bytes, token->rank).second) fail("repeats a token");
    vocabulary.tokens.push_back(token->bytes);
    vocabulary.special.push_back(0);
  }
}

std::vector<std::string> llama3_special_tokens() {
  const auto reserved = [](int i) {
    return "<|reserved_special_token_" + std::to_string(i) + "|>";
  };
  std::vector<std::string> names = {"<|begin_of_text|>",
                                    "<|end_of_text|>",
                                    reserved(0),
                                    reserved(1),
                                    reserved(2),
                                    reserved(3),
                                    "<|start_header_id|>",
                                    "<|end_header_id|>",
                                    reserved(4),
                                    "<|eot_id|>"};
  for (int i = 5; names.size() < special_token_count; ++i) names.push_back(reserved(i));
  return names;
}

/// Such a file names neither a split pattern nor special tokens; both are Llama 3's
/// (github.com/meta-llama/llama3, llama/tokenizer.py): 256 special tokens behind the others, of
/// which <|begin_of_text|> is put in front of a document.
Tokenizer tokenizer_from_ranks(std::string_view content) {
  Vocabulary vocabulary;
  vocabulary.prefix_space = PrefixSpace::none;
  vocabulary.split = TextSplit::llama3;
  vocabulary.whole_pieces_first = true;
  read_ranks(content, vocabulary);
  find_byte_ids(vocabulary);
  std::vector<int32_t> by_rank(vocabulary.tokens.size());
  for (size_t id = 0; id < by_rank.size(); ++id) by_rank[id] = static_cast<int32_t>(id);
  append_merges_of_tokens(by_rank, vocabulary);
  for (const std::string& name : llama3_special_tokens()) {
    const int32_t id = add_special_token(vocabulary, name);
    if (vocabulary.before_text.empty()) vocabulary.before_text = {id};
  }
  find_special_ids(vocabulary);
  return Tokenizer(std::move(vocabulary));
}

}  // namespace

/// The largest in use have 35 MB.
constexpr uintmax_t max_tokenizer_bytes = uintmax_t{128} << 20;

Tokenizer read_tokenizer_file(const std::filesystem::path& path) {
  const std::string content = read_file_within(path, max_tokenizer_bytes);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || content[first] == '{') return load_tokenizer(path);
  const bool is_tiktoken = begins_as_ranks(content);
  try {
    return is_tiktoken ? tokenizer_from_ranks(content) : tokenizer_from_sentencepiece(content);
  } catch (const Error& error) {
    throw Error(std::string("cannot use the ") +
                    (is_tiktoken ? "rank file" : "SentencePiece model") + " '" + shown_path(path) +
                    "': " + error.message(),
                error.hint());
  }
}

}  // namespace forge::data
