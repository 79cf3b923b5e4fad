#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/common.h"
#include "core/data/tasks/task.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data::tasks {

/// What Capo's people are made of: made-up names and places, as many as in Part 3.3. Entries of a
/// list are distinct and hold no full stop.
struct CapoLists {
  std::vector<std::string> first_names;   ///< 400
  std::vector<std::string> middle_names;  ///< 400
  std::vector<std::string> last_names;    ///< 1000
  std::vector<std::string> cities;        ///< 200, "Mapleton, OH"
  std::vector<std::string> universities;  ///< 300
  std::vector<std::string> fields;        ///< 100
  std::vector<std::string> employers;     ///< 263
  std::vector<int> headquarters;          ///< per employer: its city
  std::vector<std::string> months;        ///< 12
};

const CapoLists& capo_lists();

/// A sentence about one fact: `before` subject `between` value `after`.
struct CapoTemplate {
  std::string before;
  std::string between;
  std::string after;
};

/// Sentences of the six facts that one tells, in the paper's order and numbers: birth date 46,
/// birth city 49, university 49, field 52, working city 47, employer 48.
const std::array<std::vector<CapoTemplate>, 6>& capo_templates();

/// Capo, bioS: biographies of made-up people, to measure how much a model can know ("Physics of
/// Language Models: Part 3.3, Knowledge Capacity Scaling Laws", Allen-Zhu and Li, 2024,
/// arXiv:2404.05405). Unlike the other tasks it is text: a paragraph of six sentences, each telling
/// one fact about a person in a sentence drawn anew at every exposure. The first sentence names the
/// person, the others say she or he. A tokenizer turns paragraphs into ids; each ends with eos, all
/// tokens carry loss, and windows are cut from their concatenation. Where a paragraph tells the
/// person's facts is recorded in bytes, and token_ends leads from bytes to tokens.
struct CapoConfig {
  int64_t people = 50000;  ///< N
  /// The paper's sentences come in random order, and she or he is drawn. The code's come in the
  /// order of Fact but for employer and working city, which it swaps at random, and people in turn
  /// are she and he.
  Variant variant = Variant::paper;
};

/// Facts of the six sentences, in the order of their templates, then those told along with them.
enum class Fact { birth_date, birth_city, university, field, work_city, employer, name, pronoun };

/// Indices into capo_lists(); the working city is the employer's.
struct Person {
  int first_name = 0;
  int middle_name = 0;
  int last_name = 0;
  bool she = false;
  int month = 0;
  int day = 0;   ///< 0 … 27
  int year = 0;  ///< 0 … 199
  int birth_city = 0;
  int university = 0;
  int field = 0;
  int employer = 0;
};

/// Where a paragraph tells a fact: bytes begin … end-1.
struct FactSpan {
  Fact fact = Fact::name;
  int32_t begin = 0;
  int32_t end = 0;
};

struct Biography {
  int64_t person = 0;
  std::string text;
  std::vector<FactSpan> facts;  ///< in order of the text, each of Fact once; the first pronoun
};

class Capo {
 public:
  /// Throws Error for a bad number of people. `seed` chooses the people and all that is drawn.
  Capo(const CapoConfig& config, uint64_t seed);

  int64_t people() const { return config_.people; }
  /// Person i < people. No two have the same name.
  Person person(int64_t i) const;
  /// A fact as it is written, the full name and "she" or "he" included.
  std::string value(const Person& person, Fact fact) const;

  /// Paragraph `index` (< 2^44) of the stream: of `people` paragraphs that follow one another from
  /// a multiple of `people` on each person has one, in training in random order. Those for
  /// evaluation have sentences of their own and persons in order.
  Biography biography(Split split, uint64_t index) const;

 private:
  CapoConfig config_;
  uint64_t seed_;
};

/// End, in bytes of the text, of each of a text's ids as encode gives them. Throws Error where they
/// hold a special token.
std::vector<int32_t> token_ends(const Tokenizer& tokenizer, const std::vector<int32_t>& ids);

/// Loss that a model had on what it had to know, in nats: of all tokens that hold a byte of the
/// name, and of those that hold one of any other fact but the working city, which follows from the
/// employer.
struct KnowledgeLoss {
  double name = 0;
  double values = 0;
};
/// `token_loss`: per token of the text. Throws Error where both do not have as many tokens.
KnowledgeLoss knowledge_loss(const Biography& biography,
                             const std::vector<int32_t>& token_ends,
                             const std::vector<float>& token_loss);

/// Bits that a model of `parameters` knows a parameter, Part 3.3's capacity ratio, from the mean
/// loss of people: N log2(N0 / e^name) + N log2(S0 / e^values) over the parameters, at most what N
/// people hold, N log2(N0 / N) + N log2(S0).
double bits_per_parameter(int64_t people, const KnowledgeLoss& mean_loss, double parameters);
double max_bits_per_parameter(int64_t people, double parameters);

}  // namespace forge::data::tasks
