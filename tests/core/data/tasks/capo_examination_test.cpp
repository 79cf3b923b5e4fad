#include "core/data/tasks/capo_examination.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "core/data/tasks/spec.h"
#include "core/data/token_file_writer.h"
#include "core/data/tokenizer_json.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

using tests::contains;
using tests::error_of;
using Losses = std::vector<double>;

constexpr int64_t parameters = 12345;

/// An examination of Capo, and the files that it reads.
struct CapoExam {
  explicit CapoExam(int seq_len, config::RowKind kind = config::RowKind::packed)
      : options{}, tokens(prepare(seq_len, kind)), tokenizer(load_tokenizer(options.tokenizer)) {}

  std::unique_ptr<Examination> examination() const { return examination_of(spec, options); }
  Capo capo() const { return capo_of(spec); }

  tests::TemporaryFolder cache;
  ExaminationOptions options;
  nlohmann::json spec;
  TokenFile tokens;
  Tokenizer tokenizer;

 private:
  std::filesystem::path prepare(int seq_len, config::RowKind kind) {
    config::Experiment experiment = tests::capo_experiment(seq_len);
    experiment.data.rows = kind;
    const PreparedData prepared = data::prepare(experiment, cache.path(), {});
    options.seq_len = seq_len;
    options.rows = prepared.evaluation.at(0).rows;
    options.padded = prepared.pad_id.has_value();
    options.tokens = prepared.evaluation.at(0).tokens;
    options.tokenizer = prepared.tokenizer;
    options.parameters = parameters;
    spec = prepared.task;
    return prepared.evaluation.at(0).tokens;
  }
};

/// Documents all of whose tokens one of so many rows reads: a row goes on with the last token of
/// the row before.
std::vector<int64_t> whole_documents(const TokenFile& tokens, int64_t seq_len, int64_t rows) {
  std::vector<int64_t> whole;
  for (int64_t i = 0; i < tokens.documents(); ++i) {
    const TokenSpan span = tokens.document(i);
    const int64_t row = span.first / seq_len;
    if (row < rows && span.first + span.count - 2 < (row + 1) * seq_len) whole.push_back(i);
  }
  return whole;
}

TEST_CASE("a model without any loss knows all that there is to know of Capo's people") {
  for (const int seq_len : {300, 512, 700}) {
    const CapoExam exam(seq_len);
    REQUIRE(exam.options.rows == 8);
    const std::unique_ptr<Examination> examination = exam.examination();
    const Wanted wanted = examination->wanted();
    REQUIRE(wanted.losses);
    REQUIRE_FALSE(wanted.likeliest);
    REQUIRE_FALSE(wanted.continuation);
    REQUIRE_FALSE(wanted.log_probabilities);
    for (const int64_t row : {3, 0, 7, 1, 2, 6, 5, 4}) {
      examination->take_losses(row, Losses(static_cast<size_t>(seq_len)));
    }
    const Scores scores = examination->finish();
    const auto whole = static_cast<int64_t>(whole_documents(exam.tokens, seq_len, 8).size());
    REQUIRE((whole > 0 && whole < exam.tokens.documents()));
    REQUIRE(scores.sums().size() == 3);
    REQUIRE(*scores.mean("name_loss") == 0);
    REQUIRE(*scores.mean("value_loss") == 0);
    REQUIRE(*scores.mean("bits_per_parameter") ==
            Approx(max_bits_per_parameter(20, double(parameters))));
    for (const auto& [figure, sum] : scores.sums()) REQUIRE(sum.count == whole);
    REQUIRE(examination->finish().sums().empty());
  }
}

/// Losses of one paragraph's tokens, found from the text that the ids up to each stand for.
KnowledgeLoss expected_loss(const CapoExam& exam,
                            int64_t document,
                            const std::function<double(int64_t token)>& loss_of) {
  const TokenSpan span = exam.tokens.document(document);
  std::vector<int32_t> ids(static_cast<size_t>(span.count));
  exam.tokens.read(span.first, span.count, ids.data());
  const Biography biography =
      exam.capo().biography(Split::evaluation, static_cast<uint64_t>(document));
  REQUIRE(exam.tokenizer.decode(ids) == biography.text);
  KnowledgeLoss expected;
  for (size_t t = 0; t < ids.size(); ++t) {
    const auto place = [&](size_t count) {
      return exam.tokenizer.decode({ids.begin(), ids.begin() + static_cast<int64_t>(count)}).size();
    };
    for (const FactSpan& fact : biography.facts) {
      const bool within = place(t) < static_cast<size_t>(fact.end) &&
                          place(t + 1) > static_cast<size_t>(fact.begin);
      if (!within || fact.fact == Fact::work_city) continue;
      const double loss = loss_of(span.first + static_cast<int64_t>(t));
      (fact.fact == Fact::name ? expected.name : expected.values) += loss;
    }
  }
  return expected;
}

TEST_CASE("the loss of a paragraph is that of the tokens that tell its name and its values") {
  const int seq_len = 700;
  const CapoExam exam(seq_len);
  // Each token has a loss of its own: a row's target i is the token behind its input i.
  const auto loss_of = [](int64_t token) { return 1 + double(token % 97) / 64; };
  const std::unique_ptr<Examination> examination = exam.examination();
  KnowledgeLoss all;
  for (int64_t row = 0; row < 3; ++row) {
    Losses losses;
    for (int64_t i = 0; i < seq_len; ++i) losses.push_back(loss_of(row * seq_len + i + 1));
    examination->take_losses(row, losses);
  }
  const std::vector<int64_t> whole = whole_documents(exam.tokens, seq_len, 3);
  for (const int64_t document : whole) {
    const KnowledgeLoss loss = expected_loss(exam, document, loss_of);
    REQUIRE((loss.name > 3 && loss.values > 10));
    all.name += loss.name;
    all.values += loss.values;
  }
  REQUIRE(whole.size() > 2);
  const Scores scores = examination->finish();
  const auto count = static_cast<double>(whole.size());
  REQUIRE(*scores.mean("name_loss") == Approx(all.name / count).epsilon(1e-6));
  REQUIRE(*scores.mean("value_loss") == Approx(all.values / count).epsilon(1e-6));
  REQUIRE(*scores.mean("bits_per_parameter") ==
          Approx(bits_per_parameter(20, {all.name / count, all.values / count}, parameters)));
}

TEST_CASE("a paragraph's loss counts at its own tokens alone") {
  const int seq_len = 700;
  const CapoExam exam(seq_len);
  const TokenSpan span = exam.tokens.document(1);
  REQUIRE(span.first + span.count <= seq_len);
  Losses losses(static_cast<size_t>(seq_len));
  // Its targets lie one before its tokens in the row; the first of them is what begins it.
  for (int64_t t = 1; t < span.count; ++t) losses[static_cast<size_t>(span.first + t - 1)] = 1;
  const std::unique_ptr<Examination> examination = exam.examination();
  examination->take_losses(0, losses);
  const KnowledgeLoss expected = expected_loss(exam, 1, [](int64_t) { return 1; });
  const Scores scores = examination->finish();
  REQUIRE(scores.sums().at("name_loss").total == Approx(expected.name));
  REQUIRE(scores.sums().at("value_loss").total == Approx(expected.values));
}

TEST_CASE("a padded row is measured where its paragraph is whole") {
  const int seq_len = 177;  // about as long as a paragraph
  const CapoExam exam(seq_len, config::RowKind::padded);
  REQUIRE(exam.options.padded);
  const std::unique_ptr<Examination> examination = exam.examination();
  const auto loss_of = [](int64_t token) { return 1 + double(token % 97) / 64; };
  KnowledgeLoss all;
  int64_t whole = 0;
  for (int64_t row = 0; row < exam.options.rows; ++row) {
    const TokenSpan span = exam.tokens.document(row);
    const int64_t read = std::min<int64_t>(seq_len, span.count);
    Losses losses;
    for (int64_t i = 1; i < read; ++i) losses.push_back(loss_of(span.first + i));
    examination->take_losses(row, losses);
    losses.push_back(0);
    REQUIRE(contains(error_of([&] { examination->take_losses(row, losses); }),
                     "losses instead of " + std::to_string(read - 1)));
    if (span.count > seq_len) continue;
    const KnowledgeLoss loss = expected_loss(exam, row, loss_of);
    all.name += loss.name;
    all.values += loss.values;
    ++whole;
  }
  REQUIRE((whole > 0 && whole < exam.options.rows));
  const Scores scores = examination->finish();
  REQUIRE(scores.sums().at("name_loss").count == whole);
  REQUIRE(scores.sums().at("name_loss").total == Approx(all.name).epsilon(1e-6));
  REQUIRE(scores.sums().at("value_loss").total == Approx(all.values).epsilon(1e-6));
}

/// How many paragraphs the first row measures.
int64_t measured(const CapoExam& exam) {
  const std::unique_ptr<Examination> examination = exam.examination();
  examination->take_losses(0, Losses(static_cast<size_t>(exam.options.seq_len)));
  const Scores scores = examination->finish();
  return scores.sums().empty() ? 0 : scores.sums().at("name_loss").count;
}

TEST_CASE("a paragraph is whole in a row whose last target is its last token") {
  CapoExam exam(300);
  const TokenSpan second = exam.tokens.document(1);
  exam.options.seq_len = static_cast<int>(second.first + second.count - 1);
  REQUIRE(measured(exam) == 2);
  --exam.options.seq_len;
  REQUIRE(measured(exam) == 1);
}

TEST_CASE("a paragraph whose first token nothing tells is not measured") {
  CapoExam exam(300);
  // The same tokenizer, which puts nothing in front of a document.
  Vocabulary vocabulary = exam.tokenizer.vocabulary();
  vocabulary.before_text.clear();
  const Tokenizer tokenizer(vocabulary);
  TokenFileWriter writer(exam.cache / "a.tokens", tokenizer.vocab_size(), tokenizer.fingerprint());
  for (uint64_t i = 0; i < 2; ++i) {
    const std::vector<int32_t> ids =
        tokenizer.encode_document(exam.capo().biography(Split::evaluation, i).text);
    writer.append(ids.data(), ids.size(), {0});
  }
  writer.finish();
  exam.options.tokens = exam.cache / "a.tokens";
  exam.options.tokenizer = exam.cache / "tokenizer.json";
  save_tokenizer(tokenizer, exam.options.tokenizer);
  exam.options.rows = 1;
  exam.options.seq_len = static_cast<int>(TokenFile(exam.options.tokens).size()) - 1;
  REQUIRE(measured(exam) == 1);
}

TEST_CASE("losses of Capo that cannot be are refused") {
  const CapoExam exam(300);
  const std::unique_ptr<Examination> examination = exam.examination();
  REQUIRE(contains(error_of([&] { examination->take_losses(2, Losses(299)); }),
                   "answered row 2 with 299 losses instead of 300"));
  for (const int64_t row : {-1, 8}) {
    REQUIRE(contains(error_of([&] { examination->take_losses(row, Losses(300)); }),
                     "for row " + std::to_string(row) + " of 8"));
  }
  REQUIRE(contains(error_of([&] { examination->take_likeliest(0, {}); }), "does not ask for"));
  REQUIRE(contains(error_of([&] { examination->take_continuation(0, {}); }), "does not ask for"));
  REQUIRE(examination->finish().sums().empty());
}

TEST_CASE("an examination of Capo opens its files at the first answer") {
  ExaminationOptions options;
  options.seq_len = 10;
  options.rows = 1;
  options.tokens = "/nowhere/evaluation.tokens";
  const nlohmann::json spec = {{"name", "capo"}, {"seed", 1}, {"variant", "paper"}, {"people", 20}};
  const std::unique_ptr<Examination> examination = examination_of(spec, options);
  REQUIRE(examination->wanted().losses);
  REQUIRE(contains(error_of([&] { examination->take_losses(0, Losses(10)); }), "/nowhere"));
}

}  // namespace
}  // namespace forge::data::tasks
