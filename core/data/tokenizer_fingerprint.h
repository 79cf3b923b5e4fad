#pragma once

#include <string>

#include "core/data/vocabulary.h"

namespace forge::data {

/// Hash of a vocabulary, its merges and settings. What only some vocabularies have is part of it
/// only there, so that a new kind of setting changes no fingerprint that was recorded before.
std::string fingerprint_of(const Vocabulary& vocabulary);

}  // namespace forge::data
