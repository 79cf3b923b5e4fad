#include "core/data/tasks/capo.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/data/sections.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {
namespace {

/// Items of a section of capo.txt.
const std::vector<std::string>& capo_items(const std::string& title) {
  static const std::vector<Section> sections = read_sections(capo_text());
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
    return section.title == title;
  });
  if (found == sections.end()) throw Error("capo.txt has no section [" + title + "]");
  return found->items;
}

/// The first `count` of all pairs, each as start + middle + end.
std::vector<std::string> pairs(const std::string& starts,
                               const std::string& ends,
                               size_t count,
                               const std::string& middle = "") {
  std::vector<std::string> all;
  for (const std::string& start : capo_items(starts)) {
    for (const std::string& end : capo_items(ends)) {
      if (all.size() < count) all.push_back(start + middle + end);
    }
  }
  return all;
}

CapoLists make_lists() {
  CapoLists lists;
  lists.first_names = pairs("first name starts", "first name ends", 400);
  lists.middle_names = pairs("middle name starts", "middle name ends", 400);
  lists.last_names = pairs("last name starts", "last name ends", 1000);
  lists.cities = pairs("place starts", "city ends", 200);
  const std::vector<std::string>& states = capo_items("states");
  for (size_t i = 0; i < lists.cities.size(); ++i)
    lists.cities[i] += ", " + states[i % states.size()];
  for (const std::string& place : pairs("place starts", "university ends", 100)) {
    lists.universities.push_back("University of " + place);
    lists.universities.push_back(place + " State University");
    lists.universities.push_back(place + " Institute of Technology");
  }
  lists.fields = pairs("field starts", "field ends", 100, " ");
  lists.employers = pairs("employer starts", "employer ends", 263, " ");
  lists.months = capo_items("months");
  RandomStream random(0, stream_number("capo headquarters"));
  for (size_t i = 0; i < lists.employers.size(); ++i) {
    lists.headquarters.push_back(static_cast<int>(random.below(lists.cities.size())));
  }
  return lists;
}

/// The first `count` sentences about a fact, from all ways to tell it and all ways to begin.
std::vector<CapoTemplate> sentences(const std::string& fact, size_t count) {
  static const std::string who = "{who}", value = "{value}";
  std::vector<CapoTemplate> all;
  for (const std::string& telling : capo_items("sentences " + fact)) {
    const size_t end = telling.find(value);
    const std::string between = telling.substr(who.size(), end - who.size());
    const std::string after = telling.substr(end + value.size());
    for (const std::string& beginning : capo_items("beginnings")) {
      if (all.size() == count) return all;
      all.push_back({beginning.empty() ? "" : beginning + " ", between, after});
    }
  }
  return all;
}

constexpr int64_t all_names = int64_t{400} * 400 * 1000;
constexpr int birth_days = 28;
constexpr int birth_years = 200;
constexpr int first_birth_year = 1900;  // the paper does not say which

/// Appends a sentence and records its value and, where asked, its subject.
void add_sentence(const CapoTemplate& sentence,
                  Fact fact,
                  const std::string& subject,
                  std::optional<Fact> subject_fact,
                  const std::string& value,
                  Biography& biography) {
  std::string& text = biography.text;
  const auto here = [&text] { return static_cast<int32_t>(text.size()); };
  if (!text.empty()) text += ' ';
  text += sentence.before;
  const int32_t subject_begin = here();
  text += subject;
  if (sentence.before.empty()) {
    char& letter = text[static_cast<size_t>(subject_begin)];
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  if (subject_fact) biography.facts.push_back({*subject_fact, subject_begin, here()});
  text += sentence.between;
  const int32_t value_begin = here();
  text += value;
  biography.facts.push_back({fact, value_begin, here()});
  text += sentence.after;
}

constexpr double bits_a_nat = 1.4426950408889634;  // 1 / ln 2

double bits_of_name() { return std::log2(double(all_names)); }
double bits_of_values() { return std::log2(2.0 * (12 * 28 * 200) * 200 * 300 * 100 * 263); }

}  // namespace

const CapoLists& capo_lists() {
  static const CapoLists lists = make_lists();
  return lists;
}

const std::array<std::vector<CapoTemplate>, 6>& capo_templates() {
  static const std::array<std::vector<CapoTemplate>, 6> all = {sentences("birth date", 46),
                                                               sentences("birth city", 49),
                                                               sentences("university", 49),
                                                               sentences("field", 52),
                                                               sentences("working city", 47),
                                                               sentences("employer", 48)};
  return all;
}

Capo::Capo(const CapoConfig& config, uint64_t seed) : config_(config), seed_(seed) {
  check_range("people", config.people, 1, all_names, "so many distinct names there are");
}

Person Capo::person(int64_t i) const {
  static const uint64_t name_stream = stream_number("capo names");
  static const uint64_t fact_stream = stream_number("capo facts");
  const CapoLists& lists = capo_lists();
  const uint64_t name = permuted_index(static_cast<uint64_t>(i), all_names, seed_, name_stream);
  RandomStream random(seed_, fact_stream, static_cast<uint64_t>(i) << 6);
  const auto one_of = [&random](uint64_t count) { return static_cast<int>(random.below(count)); };
  Person person;
  person.first_name = static_cast<int>(name / 400000);
  person.middle_name = static_cast<int>(name / 1000 % 400);
  person.last_name = static_cast<int>(name % 1000);
  person.month = one_of(lists.months.size());
  person.day = one_of(birth_days);
  person.year = one_of(birth_years);
  person.birth_city = one_of(lists.cities.size());
  person.university = one_of(lists.universities.size());
  person.field = one_of(lists.fields.size());
  person.employer = one_of(lists.employers.size());
  const bool drawn = one_of(2) == 0;
  person.she = config_.variant == Variant::code ? i % 2 == 0 : drawn;
  return person;
}

std::string Capo::value(const Person& person, Fact fact) const {
  const CapoLists& lists = capo_lists();
  switch (fact) {
    case Fact::birth_date:
      return lists.months[person.month] + ' ' + std::to_string(person.day + 1) + ", " +
             std::to_string(person.year + first_birth_year);
    case Fact::birth_city: return lists.cities[person.birth_city];
    case Fact::university: return lists.universities[person.university];
    case Fact::field: return lists.fields[person.field];
    case Fact::work_city: return lists.cities[lists.headquarters[person.employer]];
    case Fact::employer: return lists.employers[person.employer];
    case Fact::name:
      return lists.first_names[person.first_name] + ' ' + lists.middle_names[person.middle_name] +
             ' ' + lists.last_names[person.last_name];
    case Fact::pronoun: break;
  }
  return person.she ? "she" : "he";
}

Biography Capo::biography(Split split, uint64_t index) const {
  static const uint64_t order_stream = stream_number("capo order");
  RandomStream random = instance_numbers("capo", seed_, split, index);
  const auto people = static_cast<uint64_t>(config_.people);
  const uint64_t exposure = index / people;
  Biography biography;
  biography.person = static_cast<int64_t>(
      split == Split::training
          ? permuted_index(index % people, people, seed_, order_stream + exposure)
          : index % people);
  const Person about = person(biography.person);

  std::vector<Fact> order = {Fact::birth_date,
                             Fact::birth_city,
                             Fact::university,
                             Fact::field,
                             Fact::work_city,
                             Fact::employer};
  if (config_.variant == Variant::paper) {
    shuffle(order, random);
  } else if (random.below(2) == 0) {
    std::swap(order[4], order[5]);
  }
  biography.text.reserve(640);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& templates = capo_templates()[static_cast<size_t>(order[i])];
    add_sentence(templates[random.below(templates.size())],
                 order[i],
                 value(about, i == 0 ? Fact::name : Fact::pronoun),
                 i == 0   ? std::optional(Fact::name)
                 : i == 1 ? std::optional(Fact::pronoun)
                          : std::nullopt,
                 value(about, order[i]),
                 biography);
  }
  return biography;
}

// How much a model knows of Capo's people.

std::vector<int32_t> token_ends(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<int32_t> ends;
  ends.reserve(ids.size());
  // The space in front is not part of the text.
  int32_t end = vocabulary.prefix_space == PrefixSpace::none ? 0 : -1;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary.size() || vocabulary.special[id] != 0) {
      throw Error("id " + std::to_string(id) + " stands for no bytes of a text");
    }
    end += static_cast<int32_t>(vocabulary.tokens[id].size());
    ends.push_back(end);
  }
  return ends;
}

KnowledgeLoss knowledge_loss(const Biography& biography,
                             const std::vector<int32_t>& token_ends,
                             const std::vector<float>& token_loss) {
  if (token_ends.size() != token_loss.size()) {
    throw Error("losses of " + std::to_string(token_loss.size()) + " tokens for a text of " +
                std::to_string(token_ends.size()));
  }
  KnowledgeLoss loss;
  size_t token = 0;
  for (const FactSpan& span : biography.facts) {
    while (token < token_ends.size() && token_ends[token] <= span.begin) ++token;
    for (; token < token_ends.size(); ++token) {
      const int32_t begin = token == 0 ? 0 : token_ends[token - 1];
      if (begin >= span.end) break;
      if (span.fact == Fact::name) loss.name += token_loss[token];
      if (span.fact != Fact::name && span.fact != Fact::work_city) {
        loss.values += token_loss[token];
      }
    }
  }
  return loss;
}

double max_bits_per_parameter(int64_t people, double parameters) {
  const auto n = static_cast<double>(people);
  return n * (bits_of_name() - std::log2(n) + bits_of_values()) / parameters;
}

double bits_per_parameter(int64_t people, const KnowledgeLoss& mean_loss, double parameters) {
  const auto n = static_cast<double>(people);
  const double name = bits_of_name() - mean_loss.name * bits_a_nat;
  const double values = bits_of_values() - mean_loss.values * bits_a_nat;
  return std::min(n * (name + values) / parameters, max_bits_per_parameter(people, parameters));
}

}  // namespace forge::data::tasks
