#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/task_scorer.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/core/data/tasks/validators.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

std::string fault(const Capo& capo, const Biography& biography) {
  const std::optional<Fault> found = find_fault(capo, biography);
  return found ? std::to_string(found->position) + ": " + found->message : "";
}

TEST_CASE("Capo's lists have the published numbers of distinct entries") {
  const CapoLists& lists = capo_lists();
  const auto check = [](const std::vector<std::string>& list, size_t count) {
    REQUIRE(list.size() == count);
    REQUIRE(std::set<std::string>(list.begin(), list.end()).size() == count);
    for (const std::string& entry : list) REQUIRE(entry.find('.') == std::string::npos);
  };
  check(lists.first_names, 400);
  check(lists.middle_names, 400);
  check(lists.last_names, 1000);
  check(lists.cities, 200);
  check(lists.universities, 300);
  check(lists.fields, 100);
  check(lists.employers, 263);
  REQUIRE(lists.headquarters.size() == 263);
  const std::array<size_t, 6> templates = {46, 49, 49, 52, 47, 48};
  std::set<std::string> wordings;
  for (size_t fact = 0; fact < 6; ++fact) {
    REQUIRE(capo_templates()[fact].size() == templates[fact]);
    for (const CapoTemplate& wording : capo_templates()[fact]) {
      wordings.insert(wording.before + "|" + wording.between + "|" + wording.after);
    }
  }
  REQUIRE(wordings.size() == 46 + 49 + 49 + 52 + 47 + 48);
}

TEST_CASE("Capo's people have names of their own and facts of all kinds") {
  const Capo capo({20000, Variant::paper}, 1);
  std::set<std::string> names;
  std::set<int> universities;
  int women = 0;
  for (int64_t i = 0; i < capo.people(); ++i) {
    const Person person = capo.person(i);
    names.insert(capo.value(person, Fact::name));
    universities.insert(person.university);
    women += person.she;
    REQUIRE((person.month < 12 && person.day < 28 && person.year < 200));
    REQUIRE((person.birth_city < 200 && person.field < 100 && person.employer < 263));
  }
  REQUIRE(names.size() == 20000);
  REQUIRE(universities.size() == 300);
  REQUIRE(std::abs(women - 10000) < 4 * 71);
}

TEST_CASE("every person has as many biographies as there were rounds") {
  const Capo capo({97, Variant::paper}, 3);
  std::map<int64_t, int> exposures;
  std::set<std::string> texts;
  std::vector<int64_t> first_round, second_round;
  for (uint64_t i = 0; i < 97 * 5; ++i) {
    const Biography biography = capo.biography(Split::training, i);
    ++exposures[biography.person];
    texts.insert(biography.text);
    if (i < 97) first_round.push_back(biography.person);
    if (i >= 97 && i < 194) second_round.push_back(biography.person);
  }
  REQUIRE(exposures.size() == 97);
  for (const auto& [person, count] : exposures) REQUIRE(count == 5);
  REQUIRE(first_round != second_round);
  REQUIRE(texts.size() == 97 * 5);
  REQUIRE(capo.biography(Split::evaluation, 98).person == 1);
}

TEST_CASE("Capo's biographies are accepted, their facts where they are said to be") {
  for (const Variant variant : {Variant::paper, Variant::code}) {
    const Capo capo({100000, variant}, 5);
    const char* asked = std::getenv("FORGE_TASK_INSTANCES");
    const size_t count = asked == nullptr ? 2000 : std::strtoull(asked, nullptr, 10);
    parallel_for(count, [&](size_t i) {
      const Biography biography = capo.biography(Split::training, i);
      const std::string found = fault(capo, biography);
      if (!found.empty()) throw std::runtime_error(biography.text + "\n" + found);
      const Person person = capo.person(biography.person);
      for (const FactSpan& span : biography.facts) {
        std::string told = biography.text.substr(span.begin, span.end - span.begin);
        if (span.fact == Fact::pronoun) told[0] = static_cast<char>(std::tolower(told[0]));
        if (told != capo.value(person, span.fact)) throw std::runtime_error(told);
      }
      if (biography.facts.size() != 8) throw std::runtime_error("facts");
    });
  }
}

TEST_CASE("Capo's variants order sentences and choose pronouns as documented") {
  const Capo code({1000, Variant::code}, 5);
  const Capo paper({1000, Variant::paper}, 5);
  std::set<std::vector<int>> code_orders, paper_orders;
  for (uint64_t i = 0; i < 400; ++i) {
    for (const Capo* capo : {&code, &paper}) {
      std::vector<int> order;
      const Biography biography = capo->biography(Split::training, i);
      for (const FactSpan& span : biography.facts) {
        if (span.fact < Fact::name) order.push_back(static_cast<int>(span.fact));
      }
      (capo == &code ? code_orders : paper_orders).insert(order);
    }
    REQUIRE(code.person(static_cast<int64_t>(i)).she == (i % 2 == 0));
  }
  REQUIRE(code_orders == std::set<std::vector<int>>{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 5, 4}});
  REQUIRE(paper_orders.size() > 250);
}

TEST_CASE("Capo's validator rejects every change of a character or word", "[slow]") {
  const Capo capo({50, Variant::paper}, 7);
  for (uint64_t i = 0; i < 2; ++i) {
    const Biography right = capo.biography(Split::training, i);
    for (size_t at = 0; at < right.text.size(); ++at) {
      for (const char letter : {'a', 'Z', ' ', '.', '1'}) {
        if (right.text[at] == letter) continue;
        Biography wrong = right;
        wrong.text[at] = letter;
        REQUIRE(fault(capo, wrong) != "");
      }
    }
    Biography wrong = right;
    wrong.text += " More.";
    REQUIRE(fault(capo, wrong).find("more text") != std::string::npos);
    wrong = right;
    wrong.text.resize(right.text.size() / 2);
    REQUIRE(fault(capo, wrong) != "");
    wrong = right;
    wrong.facts[3].end += 1;
    REQUIRE(fault(capo, wrong) == "0: facts are not recorded where they are told");
    wrong = right;
    wrong.person = 50;
    REQUIRE(fault(capo, wrong) == "0: there is no person 50");
  }
}

TEST_CASE("Capo's validator says which fact is wrong") {
  const Capo capo({50, Variant::code}, 7);
  const Biography right = capo.biography(Split::training, 3);
  const Person person = capo.person(right.person);
  for (const FactSpan& span : right.facts) {
    if (span.fact == Fact::pronoun) continue;
    Biography wrong = right;
    wrong.text[span.begin] = '#';
    INFO(right.text);
    REQUIRE(fault(capo, wrong) == std::to_string(span.begin) + ": the " + fact_name(span.fact) +
                                      " is wrong: it is " + capo.value(person, span.fact));
  }
}

TEST_CASE("losses of a biography's tokens are those of its name and values") {
  const Capo capo({1000, Variant::paper}, 7);
  uint64_t next = 0;
  const Tokenizer tokenizer = train_byte_level_bpe(
      [&](std::string& document) {
        document = capo.biography(Split::training, next).text;
        return ++next <= 300;
      },
      600,
      {});
  for (uint64_t i = 0; i < 50; ++i) {
    const Biography biography = capo.biography(Split::evaluation, i);
    const std::vector<int32_t> ids = tokenizer.encode(biography.text);
    const std::vector<int32_t> ends = token_ends(tokenizer, ids);
    REQUIRE(ends.back() == static_cast<int32_t>(biography.text.size()));
    // A loss of one a byte, for each token, tells which tokens were taken.
    double name = 0;
    double values = 0;
    std::vector<float> losses;
    for (size_t t = 0; t < ids.size(); ++t) {
      const int32_t begin = t == 0 ? 0 : ends[t - 1];
      losses.push_back(static_cast<float>(1 << (t % 11)));
      for (const FactSpan& span : biography.facts) {
        if (begin >= span.end || ends[t] <= span.begin || span.fact == Fact::work_city) continue;
        (span.fact == Fact::name ? name : values) += losses.back();
      }
    }
    const KnowledgeLoss loss = knowledge_loss(biography, ends, losses);
    REQUIRE(loss.name == name);
    REQUIRE(loss.values == values);
  }
  REQUIRE(tests::error_of([] { knowledge_loss({}, {1}, {}); }) != "");
  REQUIRE(tests::error_of([&] { token_ends(tokenizer, {tokenizer.bos_id()}); }) != "");
}

TEST_CASE("knowledge in bits a parameter is that of the formula") {
  const double name_bits = std::log2(160e6);
  const double value_bits = 47.6;  // 2 * (12 * 28 * 200) * 200 * 300 * 100 * 263
  REQUIRE(max_bits_per_parameter(1, 1) == Approx(name_bits + value_bits).epsilon(1e-3));
  REQUIRE(max_bits_per_parameter(1000, 1e5) ==
          Approx((name_bits - std::log2(1000) + value_bits) / 100).epsilon(1e-3));
  // A model that knows nothing loses log N0 and log S0; one that knows all, log N for the name.
  const double name_nats = name_bits * std::log(2);
  const double value_nats = max_bits_per_parameter(1, 1) * std::log(2) - name_nats;
  REQUIRE(bits_per_parameter(1000, {name_nats, value_nats}, 1e5) == Approx(0).margin(1e-12));
  REQUIRE(bits_per_parameter(1000, {std::log(1000), 0}, 1e5) ==
          Approx(max_bits_per_parameter(1000, 1e5)));
  REQUIRE(bits_per_parameter(1000, {0, 0}, 1e5) == max_bits_per_parameter(1000, 1e5));
  REQUIRE(bits_per_parameter(1000, {name_nats, value_nats - std::log(2)}, 1e5) ==
          Approx(1000 / 1e5));
}

TEST_CASE("Capo's stream is the same for all time") {
  REQUIRE(tasks_version == 1);
  Hasher hasher;
  const Capo capo({50000, Variant::paper}, 1);
  for (const Split split : {Split::training, Split::evaluation}) {
    for (uint64_t i = 0; i < 50; ++i) hasher.update(capo.biography(split, i * 1000).text);
  }
  REQUIRE(hasher.hex() == "ccfdd3f63a0bfd2977f94d8360e74e2e");
}

TEST_CASE("Capo refuses a bad number of people") {
  REQUIRE(tests::error_of([] {
            Capo({0, Variant::paper}, 1);
          }).find("people must be 1") != std::string::npos);
}

using tests::contains;
using tests::error_of;
using Losses = std::vector<double>;

constexpr int64_t parameters = 12345;

/// A scorer of Capo, and the files that it reads.
struct CapoExam {
  explicit CapoExam(int seq_len, config::RowKind kind = config::RowKind::packed)
      : options{}, tokens(prepare(seq_len, kind)), tokenizer(load_tokenizer(options.tokenizer)) {}

  std::unique_ptr<Scorer> examination() const { return make_scorer(spec, options); }
  Capo capo() const { return capo_of(spec); }

  tests::TemporaryFolder cache;
  ScorerOptions options;
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
    const std::unique_ptr<Scorer> scorer = exam.examination();
    const std::set<AnswerKind> requested = scorer->requested();
    REQUIRE(requested.count(AnswerKind::loss) == 1);
    REQUIRE(requested.count(AnswerKind::likeliest) == 0);
    REQUIRE(requested.count(AnswerKind::continuation) == 0);
    REQUIRE(requested.count(AnswerKind::log_probabilities) == 0);
    for (const int64_t row : {3, 0, 7, 1, 2, 6, 5, 4}) {
      scorer->add({AnswerKind::loss, row, {}, Losses(static_cast<size_t>(seq_len))});
    }
    const Scores scores = scorer->finish();
    const auto whole = static_cast<int64_t>(whole_documents(exam.tokens, seq_len, 8).size());
    REQUIRE((whole > 0 && whole < exam.tokens.documents()));
    REQUIRE(scores.sums().size() == 3);
    REQUIRE(*scores.mean("name_loss") == 0);
    REQUIRE(*scores.mean("value_loss") == 0);
    REQUIRE(*scores.mean("bits_per_parameter") ==
            Approx(max_bits_per_parameter(20, double(parameters))));
    for (const auto& [figure, sum] : scores.sums()) REQUIRE(sum.count == whole);
    REQUIRE(scorer->finish().sums().empty());
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
  const std::unique_ptr<Scorer> scorer = exam.examination();
  KnowledgeLoss all;
  for (int64_t row = 0; row < 3; ++row) {
    Losses losses;
    for (int64_t i = 0; i < seq_len; ++i) losses.push_back(loss_of(row * seq_len + i + 1));
    scorer->add({AnswerKind::loss, row, {}, losses});
  }
  const std::vector<int64_t> whole = whole_documents(exam.tokens, seq_len, 3);
  for (const int64_t document : whole) {
    const KnowledgeLoss loss = expected_loss(exam, document, loss_of);
    REQUIRE((loss.name > 3 && loss.values > 10));
    all.name += loss.name;
    all.values += loss.values;
  }
  REQUIRE(whole.size() > 2);
  const Scores scores = scorer->finish();
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
  const std::unique_ptr<Scorer> scorer = exam.examination();
  scorer->add({AnswerKind::loss, 0, {}, losses});
  const KnowledgeLoss expected = expected_loss(exam, 1, [](int64_t) { return 1; });
  const Scores scores = scorer->finish();
  REQUIRE(scores.sums().at("name_loss").total == Approx(expected.name));
  REQUIRE(scores.sums().at("value_loss").total == Approx(expected.values));
}

TEST_CASE("a padded row is measured where its paragraph is whole") {
  const int seq_len = 177;  // about as long as a paragraph
  const CapoExam exam(seq_len, config::RowKind::padded);
  REQUIRE(exam.options.padded);
  const std::unique_ptr<Scorer> scorer = exam.examination();
  const auto loss_of = [](int64_t token) { return 1 + double(token % 97) / 64; };
  KnowledgeLoss all;
  int64_t whole = 0;
  for (int64_t row = 0; row < exam.options.rows; ++row) {
    const TokenSpan span = exam.tokens.document(row);
    const int64_t read = std::min<int64_t>(seq_len, span.count);
    Losses losses;
    for (int64_t i = 1; i < read; ++i) losses.push_back(loss_of(span.first + i));
    scorer->add({AnswerKind::loss, row, {}, losses});
    losses.push_back(0);
    REQUIRE(contains(error_of([&] {
                       scorer->add({AnswerKind::loss, row, {}, losses});
                     }),
                     "losses instead of " + std::to_string(read - 1)));
    if (span.count > seq_len) continue;
    const KnowledgeLoss loss = expected_loss(exam, row, loss_of);
    all.name += loss.name;
    all.values += loss.values;
    ++whole;
  }
  REQUIRE((whole > 0 && whole < exam.options.rows));
  const Scores scores = scorer->finish();
  REQUIRE(scores.sums().at("name_loss").count == whole);
  REQUIRE(scores.sums().at("name_loss").total == Approx(all.name).epsilon(1e-6));
  REQUIRE(scores.sums().at("value_loss").total == Approx(all.values).epsilon(1e-6));
}

/// How many paragraphs the first row measures.
int64_t measured(const CapoExam& exam) {
  const std::unique_ptr<Scorer> scorer = exam.examination();
  scorer->add({AnswerKind::loss, 0, {}, Losses(static_cast<size_t>(exam.options.seq_len))});
  const Scores scores = scorer->finish();
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
  const std::unique_ptr<Scorer> scorer = exam.examination();
  REQUIRE(contains(error_of([&] {
                     scorer->add({AnswerKind::loss, 2, {}, Losses(299)});
                   }),
                   "answered row 2 with 299 losses instead of 300"));
  for (const int64_t row : {-1, 8}) {
    REQUIRE(contains(error_of([&] {
                       scorer->add({AnswerKind::loss, row, {}, Losses(300)});
                     }),
                     "for row " + std::to_string(row) + " of 8"));
  }
  REQUIRE(contains(error_of([&] {
                     scorer->add({AnswerKind::likeliest, 0, {}, {}});
                   }),
                   "does not ask for"));
  REQUIRE(contains(error_of([&] {
                     scorer->add({AnswerKind::continuation, 0, {}, {}});
                   }),
                   "does not ask for"));
  REQUIRE(scorer->finish().sums().empty());
}

TEST_CASE("a scorer of Capo opens its files at the first answer") {
  ScorerOptions options;
  options.seq_len = 10;
  options.rows = 1;
  options.tokens = "/nowhere/evaluation.tokens";
  const nlohmann::json spec = {{"name", "capo"}, {"seed", 1}, {"variant", "paper"}, {"people", 20}};
  const std::unique_ptr<Scorer> scorer = make_scorer(spec, options);
  REQUIRE(scorer->requested().count(AnswerKind::loss) == 1);
  REQUIRE(contains(error_of([&] {
                     scorer->add({AnswerKind::loss, 0, {}, Losses(10)});
                   }),
                   "/nowhere"));
}

}  // namespace
}  // namespace forge::data::tasks
