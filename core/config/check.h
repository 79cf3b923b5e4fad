#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/block_texts.h"
#include "core/config/keys.h"
#include "core/config/layers.h"

namespace forge::config {

/// Folders from which relative paths in a config are meant.
struct PathBases {
  std::filesystem::path working_directory;  ///< of paths on the command line
  std::filesystem::path project_folder;     ///< of paths in templates (Setting::project_folder)
  std::vector<std::filesystem::path> backends =
      {};  ///< folders of declared backends, nearest first
  std::vector<std::filesystem::path> blocks =
      {};                                        ///< folders of blocks of one's own, nearest first
  std::shared_ptr<BlockTexts> block_texts = {};  ///< null: each file is read anew
};

/// Checks all that concerns several keys or a key's meaning, and fills in what follows from others:
/// num_kv_heads, head_dim, the canonical canon.set, max_steps from max_tokens (rounded up),
/// absolute paths. Throws Error with the reason at the place that gave the guilty key its value, or
/// reports every mistake to `on_problem`.
void check_and_complete(Draft& draft,
                        const PathBases& bases,
                        const ProblemSink& on_problem = nullptr);

/// The same for the section `model` alone. Returns whether the model has all keys that it needs.
bool check_and_complete_model(Draft& draft,
                              const PathBases& bases,
                              const ProblemSink& on_problem = nullptr);

/// Refuses keys that somebody set in the section of a mixer that model.layers does not name. A
/// value of an earlier layer is reset to its default, and so is one of a template whose
/// model.layers another file replaced.
void refuse_unused_sections(Draft& draft,
                            const std::vector<const model::BlockKind*>& mixers,
                            const ProblemSink& on_problem = nullptr);

/// Whether a template that knew other mixers gave the key its value: another file replaced
/// model.layers.
bool is_of_replaced_layers(const Draft& draft, const std::string& key);

/// Checks the section `optimizer`. A key that the optimizer does not read is refused; a value that
/// the config only inherits from a template with another optimizer is reset to its default.
void check_and_complete_optimizer(Draft& draft, const ProblemSink& on_problem);

// Helpers of the checks.

/// Whether the key was given by a template that the file which gave `because` its value extends or
/// includes, or that gave it another value itself: then it was meant for that one.
bool is_inherited(const Draft& draft, const std::string& key, const std::string& because);

/// Place of a setting's layer in the order in which layers are applied.
int rank(const Setting& setting);
constexpr int rank_of_command_line = 3;

/// An Error at the place of the key, of several that disagree, that was set last.
Error complaint(const Draft& draft,
                const std::vector<std::string>& keys,
                const std::string& message,
                const std::string& hint = "");

using model::quoted;

/// Throws where text is none of a few words which are not an enumeration of the schema.
void check_word(const Draft& draft,
                const std::string& key,
                const std::string& word,
                const std::vector<std::string>& known);

/// Refuses a key that nothing reads because of the value of the key `because`. A value from an
/// earlier layer than that of `because` is reset to its default instead: who turns a part of a
/// model off need not know its settings. The caller sets the default.
void drop_unused(Draft& draft,
                 const std::string& key,
                 const std::string& because,
                 const std::string& reason,
                 const std::string& hint = "");

/// The same for a key of another section than `model`. A value equal to the default is fine; any
/// other becomes the default.
void refuse_unused(Draft& draft,
                   const std::string& key,
                   const std::string& because,
                   const std::string& reason,
                   const std::string& hint = "");

/// How the path of a file begins that lies where `forge data get` puts it.
constexpr const char* corpora_prefix = "corpora:";

/// A path as meant where it was written, absolute; "~/" is the user's home, "corpora:" the folder
/// of the public texts that were got.
std::filesystem::path meant_path(const Setting& setting,
                                 const std::string& path,
                                 const PathBases& bases);

/// Whether the name is that of JSON lines, compressed or not.
bool is_json_lines(const std::filesystem::path& path);

/// Makes the path of a key absolute; an empty one stays. Throws Error at the place that set it
/// where there is no such file or it must not be read.
void complete_path(Draft& draft, const std::string& key, std::string& path, const PathBases& bases);

/// Checks the section `data` and tokenizer.path, and fills in what follows: absolute paths, and
/// data.documents record where the source is jsonl.
void check_and_complete_data(Draft& draft, const PathBases& bases, const ProblemSink& on_problem);

/// Checks data.task against data.source, and fills in what follows where a task has ids of its own:
/// tokenizer.kind none, and model.vocab_size where nobody gave it.
void check_and_complete_task(Draft& draft, const PathBases& bases, const ProblemSink& on_problem);

}  // namespace forge::config
