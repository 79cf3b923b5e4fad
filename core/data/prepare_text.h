#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "core/config/experiment.h"
#include "core/data/prepare.h"
#include "core/data/text_source.h"
#include "core/data/tokenizer.h"

/// What prepare() does for a text, alone or as a source of a mixture.
namespace forge::data {

/// Rows of one text that a run uses.
struct Demand {
  int64_t training = 0;    ///< of text without an end: of other text all are used
  int64_t evaluation = 0;  ///< at most
  int64_t selection = 0;   ///< behind those of evaluation, of which none may be lacking then
};

/// How a run's data is prepared, whatever it is made of.
struct Work {
  const config::Experiment& experiment;
  std::filesystem::path folder;   ///< that holds the folders of all texts
  std::filesystem::path surveys;  ///< for what is kept of texts; "": each is read again
  const Progress& progress;
  bool check_content;
};

PreparedData prepare_text(const Work& work, const TextSource& source, Demand demand);

/// What follows from the tokenizer alone. Throws Error where the experiment cannot have it.
PreparedData prepared_with(const config::Experiment& experiment, const Tokenizer& tokenizer);

/// What the files of a folder of the cache were made from.
nlohmann::json words_of(const config::Experiment& experiment);

}  // namespace forge::data
