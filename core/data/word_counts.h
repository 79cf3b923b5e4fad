#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

namespace forge::data {

/// Gives one document after another; false when there are no more.
using NextDocument = std::function<bool(std::string& document)>;

/// How often each piece occurs in the documents, a space put before each of them, as GPT-2's
/// pattern splits them. On all cores; `next_document` is called on this thread alone. At most some
/// tens of megabytes of documents are held at a time.
std::unordered_map<std::string, int64_t> count_words(const NextDocument& next_document);

}  // namespace forge::data
