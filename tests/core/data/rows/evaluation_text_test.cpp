#include "core/data/rows/evaluation_text.h"

#include "core/base/files.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "tests/core/data/rows/small_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

/// With short rows, so that few sentences fill them.
config::Experiment short_experiment() {
  config::Experiment experiment = small_experiment();
  experiment.model.vocab_size = 300;
  experiment.tokenizer.vocab_size = 300;
  experiment.train.seq_len = 16;
  experiment.train.eval_rows = 1000;
  return experiment;
}

/// Prepares two texts: what is known of the second one.
EvaluationText known_of(const std::string& training, const std::string& evaluation) {
  const tests::TemporaryFolder folder;
  config::Experiment experiment = short_experiment();
  experiment.data.source = "text";
  experiment.data.path = folder.write("training.txt", training);
  experiment.data.evaluation_path = folder.write("evaluation.txt", evaluation);
  return prepare(experiment, folder.path() / "cache", {}).evaluation_text;
}

TEST_CASE("repeated sentences are those that the training rows hold, token for token") {
  // Enough of it that the rows of 17 ids hold every sentence.
  const std::string padding(400, 'z');
  const std::string training =
      "The red cat sat on a mat. Who ran home? A dog did!\nIt is late now. " + padding + ".";
  const std::string end = " " + std::string(401, 'y') + ".";
  // In another place of its paragraph a sentence is the same one; its last one is never in.
  const std::string half = "Who ran home? The red cat sat on a hat. A dog did!";
  REQUIRE(known_of(training, half + end).repeated_sentences == Approx(2.0 / 4));
  REQUIRE(known_of(training, "Nobody came. It is late, now." + end).repeated_sentences == 0.0);
  const EvaluationText lines = known_of(training, "A dog did!\n\n\nIt is late now.\n\n" + end);
  REQUIRE(lines.repeated_sentences == Approx(2.0 / 3));
  REQUIRE_FALSE(lines.entropy_floor);
}

TEST_CASE("the entropy floor of stories is their choices over their tokens") {
  const tests::TemporaryFolder cache;
  config::Experiment experiment = short_experiment();
  experiment.train.eval_rows = 100;
  const PreparedData prepared = prepare(experiment, cache.path(), {});
  const TokenFile file(prepared.evaluation[0].tokens);
  int64_t stories = 0, tokens = 0;  // those that begin within the rows
  while (file.document(stories).first < 100 * 16 + 1) tokens += file.document(stories++).count;
  const double nats = toy_stories_nats(1, Split::evaluation, static_cast<uint64_t>(stories));
  REQUIRE(prepared.evaluation_text.entropy_floor == Approx(nats / double(tokens)));

  experiment.data.rows = config::RowKind::padded;
  experiment.train.eval_rows = 3;
  REQUIRE_FALSE(prepare(experiment, cache.path(), {}).evaluation_text.entropy_floor);
  experiment.train.seq_len = 2000;  // no story is cut off
  const PreparedData whole = prepare(experiment, cache.path(), {});
  const TokenFile longer(whole.evaluation[0].tokens);
  tokens = 0;
  for (int64_t i = 0; i < 3; ++i) tokens += longer.document(i).count - 1;
  REQUIRE(whole.evaluation_text.entropy_floor ==
          Approx(toy_stories_nats(1, Split::evaluation, 3) / double(tokens)));
}

TEST_CASE("what is known of a text is kept beside its tokens") {
  const tests::TemporaryFolder cache;
  const config::Experiment experiment = short_experiment();
  const PreparedData made = prepare(experiment, cache.path(), {});
  REQUIRE(made.evaluation_text.repeated_sentences);
  bool looked_again = false;
  const PreparedData again =
      prepare(experiment, cache.path(), [&](double, const std::string&) { looked_again = true; });
  REQUIRE_FALSE(looked_again);
  REQUIRE(again.evaluation_text.repeated_sentences == made.evaluation_text.repeated_sentences);
  REQUIRE(again.evaluation_text.entropy_floor == made.evaluation_text.entropy_floor);

  // A damaged file is as good as none.
  write_file_atomic(made.train[0].tokens.parent_path() / "evaluation_text.json", "{");
  const PreparedData anew = prepare(experiment, cache.path(), {});
  REQUIRE(anew.evaluation_text.repeated_sentences == made.evaluation_text.repeated_sentences);
}

}  // namespace
}  // namespace forge::data
