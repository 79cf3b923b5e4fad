#pragma once

#include <string>

#include "core/data/corpus/chunk_reader.h"

namespace forge::data {

/// The text of part `index` of a chunk: of JSON lines the text in the field of the rule. Throws
/// Error naming file and line where that line is no JSON object or has no such text.
std::string document_text(const TextFiles& files, const TextChunk& chunk, size_t index);

}  // namespace forge::data
