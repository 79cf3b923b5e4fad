#include "core/data/token_stream.h"

#include <algorithm>

#include "core/data/ordered_parallel.h"
#include "core/data/pretokenizer.h"

namespace forge::data {
namespace {

constexpr uint64_t stories_at_once = 256;  // about a quarter of a megabyte
constexpr size_t part_bytes = size_t{1} << 20;
constexpr size_t sample_bytes = size_t{4} << 20;  // changing it changes every trained tokenizer
constexpr size_t slice_bytes = size_t{64} << 10;

/// A part of a document that is encoded at once.
struct Part {
  std::string_view text;
  bool begins_document;
  bool ends_document;
};

std::vector<Part> parts_of(const std::vector<std::string_view>& documents,
                           const Tokenizer& tokenizer) {
  std::vector<Part> parts;
  for (std::string_view document : documents) {
    bool begins = true;
    while (!document.empty()) {
      const size_t end = tokenizer.next_safe_cut(document, std::min(part_bytes, document.size()));
      parts.push_back({document.substr(0, end), begins, end == document.size()});
      document.remove_prefix(end);
      begins = false;
    }
  }
  return parts;
}

}  // namespace

void write_toy_stories(uint64_t seed,
                       Split split,
                       int64_t tokens,
                       const Tokenizer& tokenizer,
                       const Progress& progress,
                       TokenFileWriter& writer) {
  const auto make = [&](int64_t batch) {
    std::vector<int32_t> ids;
    const uint64_t first = static_cast<uint64_t>(batch) * stories_at_once;
    for (uint64_t i = first; i < first + stories_at_once; ++i) {
      tokenizer.append_document(toy_story(seed, split, i), ids);
    }
    return ids;
  };
  const auto take = [&](const std::vector<int32_t>& ids) {
    writer.append(ids.data(), ids.size());
    const double fraction = static_cast<double>(writer.size()) / static_cast<double>(tokens);
    if (progress) progress(std::min(1.0, fraction), "writing tokens");
    return writer.size() < tokens;
  };
  if (writer.size() < tokens) ordered_parallel(-1, make, take);
}

void write_documents(const std::vector<std::string_view>& documents,
                     const Tokenizer& tokenizer,
                     const Progress& progress,
                     TokenFileWriter& writer) {
  const std::vector<Part> parts = parts_of(documents, tokenizer);
  const auto make = [&](int64_t index) {
    const Part& part = parts[static_cast<size_t>(index)];
    std::vector<int32_t> ids;
    if (part.begins_document) {
      tokenizer.append_beginning(part.text, ids);
    } else {
      tokenizer.append_continuation(part.text, ids);
    }
    if (part.ends_document) tokenizer.append_end(ids);
    return ids;
  };
  size_t taken = 0;
  const auto take = [&](const std::vector<int32_t>& ids) {
    writer.append(ids.data(), ids.size());
    const double fraction = static_cast<double>(++taken) / static_cast<double>(parts.size());
    if (progress) progress(fraction, "writing tokens");
    return true;
  };
  ordered_parallel(static_cast<int64_t>(parts.size()), make, take);
}

NextDocument toy_stories_sample(uint64_t seed) {
  return [seed, index = uint64_t{0}, bytes = size_t{0}](std::string& document) mutable {
    if (bytes >= sample_bytes) return false;
    document = toy_story(seed, Split::training, index++);
    bytes += document.size();
    return true;
  };
}

NextDocument documents_sample(const std::vector<std::string_view>& documents) {
  size_t total = 0;
  for (const std::string_view document : documents) total += document.size();
  std::vector<std::string_view> slices;
  if (total <= sample_bytes) {
    slices = documents;
  } else {
    // Place k of the slices is at k / count of all bytes, found by walking the documents along.
    constexpr size_t count = sample_bytes / slice_bytes;
    size_t before = 0;
    size_t k = 0;
    for (const std::string_view document : documents) {
      for (; k < count && total / count * k < before + document.size(); ++k) {
        const size_t place = total / count * k - before;
        const size_t begin = place == 0 ? 0 : next_safe_cut(TextSplit::gpt2, document, place);
        const size_t end = next_safe_cut(
            TextSplit::gpt2, document, std::min(begin + slice_bytes, document.size()));
        if (begin < end)
          slices.push_back(document.substr(begin, std::min(end - begin, 2 * slice_bytes)));
      }
      before += document.size();
    }
  }
  return [slices, index = size_t{0}](std::string& document) mutable {
    if (index == slices.size()) return false;
    document = slices[index++];
    return true;
  };
}

}  // namespace forge::data
