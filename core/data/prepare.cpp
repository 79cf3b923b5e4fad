#include "core/data/prepare.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/config/data_sources.h"
#include "core/data/mixture.h"
#include "core/data/prepare_task.h"
#include "core/data/prepare_text.h"
#include "core/data/text_source.h"
#include "core/data/token_folder.h"

namespace forge::data {
namespace {

constexpr double max_generated_tokens = 1e11;  // 200 GB of token file

/// Rows of training that the run consumes.
int64_t needed_train_rows(const config::Experiment& experiment) {
  const config::TrainConfig& train = experiment.train;
  const int64_t steps = std::max<int64_t>(1, train.max_steps);
  const double tokens = static_cast<double>(steps) * train.batch_size * train.seq_len;
  if (tokens > max_generated_tokens) {
    throw Error("train.max_steps " + with_thousands(train.max_steps) + " of " +
                    with_thousands(int64_t{train.batch_size} * train.seq_len) +
                    " tokens each need more generated text than " +
                    with_thousands(static_cast<int64_t>(max_generated_tokens)) + " tokens",
                {},
                "lower train.max_steps, or train on text of your own with data.path");
  }
  return steps * train.batch_size;
}

/// One of the sources of a mixture.
struct Ingredient {
  std::string name;
  double weight;
  config::Experiment experiment;  ///< with this source as all of its data
  TextSource source;
};

/// Runs `action`; an Error of it says which source it is about.
template <class Action>
auto naming(const std::string& source, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error("data.sources." + source + ": " + error.message(),
                error.where(),
                error.hint(),
                error.exit_code());
  }
}

/// Progress that says which source it is about.
Progress naming(const std::string& source, const Progress& progress) {
  return [&progress, source](double fraction, const std::string& phase) {
    if (progress) progress(fraction, source + ": " + phase);
  };
}

std::vector<Ingredient> open_sources(const Work& work) {
  std::vector<Ingredient> ingredients;
  for (const auto& [name, source] : work.experiment.data.sources) {
    if (source.weight == 0) continue;
    config::Experiment alone = work.experiment;
    alone.data = config::data_of_source(work.experiment.data, source);
    TextSource text = naming(name, [&, &named = name] {
      return TextSource(alone.data, naming(named, work.progress), work.surveys);
    });
    ingredients.push_back({name, source.weight, std::move(alone), std::move(text)});
  }
  return ingredients;
}

Mixture mixture_of(const std::vector<Ingredient>& ingredients) {
  std::vector<double> weights;
  for (const Ingredient& ingredient : ingredients) weights.push_back(ingredient.weight);
  return Mixture(weights);
}

std::string fingerprint_of(const std::vector<Ingredient>& ingredients, const Mixture& mixture) {
  std::string text = "mixture\n";
  for (size_t i = 0; i < ingredients.size(); ++i) {
    text += ingredients[i].name + " " + std::to_string(mixture.share(i)) + " " +
            ingredients[i].source.fingerprint() + "\n";
  }
  return hash_hex(text);
}

/// Text of all sources in proportion, to train one tokenizer on.
NextDocument sample_of(const std::vector<Ingredient>& ingredients, const Mixture& mixture) {
  std::vector<NextDocument> samples;
  for (size_t i = 0; i < ingredients.size(); ++i) {
    const int64_t bytes = tokenizer_sample_bytes * mixture.share(i) / Mixture::period;
    samples.push_back(ingredients[i].source.sample(std::max<int64_t>(1, bytes)));
  }
  return [samples = std::move(samples), at = size_t{0}](std::string& document) mutable {
    for (; at < samples.size(); ++at) {
      if (samples[at](document)) return true;
    }
    return false;
  };
}

/// The one tokenizer of a mixture, in a folder of its own that names the others.
fs::path make_tokenizer(const Work& work,
                        const std::vector<Ingredient>& ingredients,
                        const Mixture& mixture,
                        const std::string& fingerprint) {
  const config::Experiment& experiment = work.experiment;
  const TokenFolder folder(
      work.folder / ("mixture-" + fingerprint) / tokenizer_folder_name(experiment.tokenizer),
      work.progress,
      work.check_content);
  const Tokenizer tokenizer =
      folder.tokenizer(experiment.tokenizer, [&] { return sample_of(ingredients, mixture); });
  prepared_with(experiment, tokenizer);  // refuses before there is work to do
  return folder.tokenizer_path();
}

/// Leaves word in the mixture's folder of where its sources lie.
void describe_mixture(const Work& work, const PreparedData& prepared) {
  nlohmann::json words = words_of(work.experiment);
  for (const PreparedRows& rows : prepared.train) {
    const fs::path folder = rows.tokens.parent_path();
    words["parts"][rows.name] = {{"weight", rows.weight},
                                 {"folder", folder.lexically_relative(work.folder).string()}};
  }
  TokenFolder(prepared.tokenizer.parent_path(), work.progress, false).describe(words);
}

/// Each source lies in the cache as if it were alone and the tokenizer a file that was given.
PreparedData prepare_mixture(const Work& work) {
  std::vector<Ingredient> ingredients = open_sources(work);
  const Mixture mixture = mixture_of(ingredients);
  PreparedData all;
  all.data_fingerprint = fingerprint_of(ingredients, mixture);
  all.tokenizer = make_tokenizer(work, ingredients, mixture, all.data_fingerprint);
  const bool endless = std::any_of(ingredients.begin(), ingredients.end(), [](const auto& each) {
    return each.source.is_endless();
  });
  const int64_t training = endless ? needed_train_rows(work.experiment) : 0;
  for (size_t i = 0; i < ingredients.size(); ++i) {
    Ingredient& ingredient = ingredients[i];
    config::TokenizerConfig& tokenizer = ingredient.experiment.tokenizer;
    if (tokenizer.path.empty()) tokenizer.path = all.tokenizer.string();
    const Progress progress = naming(ingredient.name, work.progress);
    const config::TrainConfig& train = work.experiment.train;
    const int64_t reported = mixture.rows_of(i, train.eval_rows);
    const int64_t held_out = mixture.rows_of(i, int64_t{train.eval_rows} + train.selection_rows);
    const Demand demand{mixture.rows_of(i, training), reported, held_out - reported};
    PreparedData one = naming(ingredient.name, [&] {
      return prepare_text(
          {ingredient.experiment, work.folder, work.surveys, progress, work.check_content},
          ingredient.source,
          demand);
    });
    for (auto* rows : {&one.train, &one.evaluation, &one.selection}) {
      for (PreparedRows& file : *rows) {
        file.name = ingredient.name;
        file.weight = ingredient.weight;
      }
    }
    all.document_start = one.document_start;
    all.pad_id = one.pad_id;
    all.tokenizer_fingerprint = one.tokenizer_fingerprint;
    all.train.push_back(one.train[0]);
    if (one.evaluation[0].rows > 0) all.evaluation.push_back(one.evaluation[0]);
    if (!one.selection.empty()) all.selection.push_back(one.selection[0]);
  }
  describe_mixture(work, all);
  return all;
}

}  // namespace

PreparedData prepare(const config::Experiment& experiment,
                     const fs::path& cache_dir,
                     const Progress& progress,
                     bool check_content) {
  if (experiment.data.has_own_ids()) return prepare_task(experiment);
  const fs::path surveys = check_content ? fs::path() : cache_dir / "surveys";
  const Work work{experiment, cache_dir / "data", surveys, progress, check_content};
  if (experiment.data.source == "mixture") return prepare_mixture(work);
  const TextSource source(experiment.data, progress, surveys);
  const int64_t training = source.is_endless() ? needed_train_rows(experiment) : 0;
  return prepare_text(
      work, source, {training, experiment.train.eval_rows, experiment.train.selection_rows});
}

}  // namespace forge::data
