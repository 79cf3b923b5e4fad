#include "tests/core/data/tasks/validators.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "core/data/tasks/task_support.h"
#include "core/data/tasks/tasks.h"

namespace forge::data::tasks {
namespace {

int32_t place(size_t position) { return static_cast<int32_t>(position); }

/// Throws Fault where `scored` is not as the right one says, or not as long as the text.
void check_scored(const Instance& instance, const std::vector<uint8_t>& right) {
  const size_t both = std::min(instance.scored.size(), right.size());
  for (size_t i = 0; i < both; ++i) {
    if ((instance.scored[i] != 0) == (right[i] != 0)) continue;
    throw Fault{place(i),
                right[i] != 0 ? "carries no loss, and should" : "carries loss, and should not"};
  }
  if (instance.scored.size() != right.size()) {
    throw Fault{place(both),
                "loss is marked for " + std::to_string(instance.scored.size()) + " tokens of " +
                    std::to_string(right.size())};
  }
}

/// Throws Fault where the answers' places are not the right ones.
void check_answers(const Instance& instance, const std::vector<Answer>& right) {
  const size_t both = std::min(instance.answers.size(), right.size());
  for (size_t i = 0; i < both; ++i) {
    const Answer& a = instance.answers[i];
    const Answer& b = right[i];
    if (a.loss_begin == b.loss_begin && a.begin == b.begin && a.end == b.end && a.group == b.group)
      continue;
    throw Fault{b.begin, "the answer that begins here is not recorded as it is"};
  }
  if (instance.answers.size() != right.size()) {
    throw Fault{place(instance.tokens.size()),
                std::to_string(instance.answers.size()) + " answers are recorded, and there are " +
                    std::to_string(right.size())};
  }
}

void check(const Copy& task, const Instance& instance) {
  const std::vector<int32_t>& tokens = instance.tokens;
  const auto length = static_cast<size_t>(task.query());
  size_t at = 0;
  expect(tokens, at, task.bos(), "bos");
  std::vector<bool> seen(length);
  for (; at <= length; ++at) {
    if (at >= tokens.size()) throw Fault{place(at), "the text ends within the permutation"};
    const int32_t token = tokens[at];
    if (token < 0 || token >= task.query()) {
      throw Fault{place(at), "not a number of the permutation"};
    }
    if (seen[token]) throw Fault{place(at), task.token_name(token) + " comes a second time"};
    seen[token] = true;
  }
  expect(tokens, at, task.query(), "the query marker");
  for (size_t i = 1; i <= length; ++i) expect(tokens, at, tokens[i], "the token to be copied");
  if (at != tokens.size()) throw Fault{place(at), "more text behind the copy"};
  std::vector<uint8_t> scored(tokens.size());
  std::fill(scored.begin() + task.answer().begin, scored.begin() + task.answer().end, uint8_t{1});
  check_scored(instance, scored);
  check_answers(instance, {task.answer()});
}

using Successors = std::unordered_map<int32_t, int32_t>;

/// Reads the steps up to the first token that is no letter. Throws Fault unless they are one cycle.
Successors read_cycle(const NameSet& names, const std::vector<int32_t>& tokens, size_t& position) {
  Successors next;
  std::unordered_map<int32_t, size_t> reached;
  const size_t begin = position;
  while (position < tokens.size() && tokens[position] >= 0 &&
         tokens[position] < names.end_of_letters()) {
    const size_t step = position;
    const int32_t from = names.read(tokens, position);
    const size_t second = position;
    const int32_t to = names.read(tokens, position);
    if (!next.emplace(from, to).second) throw Fault{place(step), "a second step from this name"};
    if (!reached.emplace(to, second).second) {
      throw Fault{place(second), "a second step to this name"};
    }
  }
  for (const auto& [to, at] : reached) {
    if (next.count(to) == 0) throw Fault{place(at), "no step leads on from here"};
  }
  if (next.empty()) throw Fault{place(begin), "no steps"};
  const int32_t first = next.begin()->first;
  size_t length = 1;
  for (int32_t at = next.at(first); at != first; at = next.at(at)) ++length;
  if (length != next.size()) {
    throw Fault{place(begin),
                "the steps are several cycles: one has " + std::to_string(length) + " of " +
                    std::to_string(next.size()) + " names"};
  }
  return next;
}

void check(const Depo& task, const Instance& instance) {
  const DepoConfig& config = task.config();
  const NameSet names(
      config.letters, config.min_name_length, config.max_name_length, config.max_nodes);
  const std::vector<int32_t>& tokens = instance.tokens;
  size_t at = 0;
  expect(tokens, at, task.bos(), "bos");
  const Successors next = read_cycle(names, tokens, at);
  const size_t n = next.size();
  if (n < 3 || n > static_cast<size_t>(config.max_nodes)) {
    throw Fault{place(at), "a cycle of " + std::to_string(n) + " names"};
  }
  std::vector<uint8_t> scored(tokens.size());
  std::vector<Answer> answers;
  std::set<int32_t> asked;
  while (at < tokens.size()) {
    if (tokens[at] < task.hop(1) || tokens[at] > task.hop(config.max_hops)) {
      throw Fault{place(at), "not a hop marker"};
    }
    const int k = tokens[at] - task.hop(1) + 1;
    const int32_t begin = place(++at);
    const int32_t query = names.read(tokens, at);
    if (next.count(query) == 0) throw Fault{begin, "a question about a name not in the cycle"};
    if (!asked.insert(query).second) throw Fault{begin, "a second question about a name"};
    const int32_t marker = place(at);
    expect(tokens, at, task.answer(), "the answer marker");
    const int32_t given = names.read(tokens, at);
    int32_t right = query;
    for (int step = 0; step < k; ++step) right = next.at(right);
    if (given != right) {
      Instance expected;
      names.add(right, false, expected);
      throw Fault{marker + 1,
                  "the answer is wrong: " + std::to_string(k) + " steps lead to " +
                      print(task, expected.tokens)};
    }
    std::fill(scored.begin() + marker, scored.begin() + place(at), uint8_t{1});
    answers.push_back({marker, marker + 1, place(at), k});
  }
  if (answers.size() != std::min(n, static_cast<size_t>(config.max_queries))) {
    throw Fault{place(at), std::to_string(answers.size()) + " questions"};
  }
  check_scored(instance, scored);
  check_answers(instance, answers);
}

/// Mano's texts, read by the names of their tokens.
class ManoReader {
 public:
  ManoReader(const Mano& task, const Instance& instance) : task_(task), tokens_(instance.tokens) {}

  /// The name at a place without the mark of a second form, if it begins so. Throws Fault.
  std::string expect(size_t position, const std::string& begin, const std::string& what) const {
    if (position >= tokens_.size()) {
      throw Fault{place(position), "the text ends before " + what};
    }
    const int32_t id = tokens_[position];
    if (id < 0 || id >= task_.vocab_size()) {
      throw Fault{place(position), "not a token of the task"};
    }
    std::string name = task_.token_name(id);
    const bool is_second = name.back() == '\'';
    if (is_second) name.pop_back();
    const bool fits = begin.empty() ? is_number(name) || is_operator(name)
                                    : name.compare(0, begin.size(), begin) == 0;
    if (!fits || (is_second && !task_.has_synonyms())) throw Fault{place(position), "not " + what};
    return name;
  }

  /// The number in "<len 3>".
  static int number_in(const std::string& name) { return std::stoi(name.substr(5)); }
  static bool is_number(const std::string& name) { return name[0] >= '0' && name[0] <= '9'; }
  static bool is_operator(const std::string& name) {
    return name == "+" || name == "-" || name == "*";
  }

  /// The value of the expression in tokens begin … end-1; throws Fault.
  int evaluate(size_t begin, size_t end) const {
    std::vector<int> values;  // from the right, so that both sides are there when an operator comes
    for (size_t i = end; i-- > begin;) {
      const std::string name = expect(i, "", "an operator or operand");
      if (is_number(name)) {
        values.push_back(std::stoi(name));
        continue;
      }
      if (values.size() < 2) throw Fault{place(i), "an operator without two operands"};
      const int left = values.back();
      values.pop_back();
      const int right = values.back();
      const int value = name == "+" ? left + right : name == "-" ? left - right : left * right;
      values.back() = (value + Mano::modulus) % Mano::modulus;
    }
    if (values.size() != 1) throw Fault{place(begin), "more operands than the operators take"};
    return values.back();
  }

 private:
  const Mano& task_;
  const std::vector<int32_t>& tokens_;
};

void check(const Mano& task, const Instance& instance) {
  const ManoReader reader(task, instance);
  reader.expect(0, "<bos", "bos");
  const int size = ManoReader::number_in(reader.expect(1, "<len", "a length"));
  const size_t marker = 2 * static_cast<size_t>(size) + 3;
  const std::string answer =
      reader.expect(marker, "<ans", "the answer marker behind so many operators");
  if (answer != "<ans>" && ManoReader::number_in(answer) != size) {
    throw Fault{place(marker), "the answer marker has another length"};
  }
  const int value = reader.evaluate(2, marker);
  const std::string given = reader.expect(marker + 1, "", "a value");
  if (!ManoReader::is_number(given)) throw Fault{place(marker + 1), "not a value"};
  if (std::stoi(given) != value) {
    throw Fault{place(marker + 1), "the value is wrong: it is " + std::to_string(value)};
  }
  if (instance.tokens.size() != marker + 2) {
    throw Fault{place(marker + 2), "more text behind the value"};
  }
  check_scored(instance, std::vector<uint8_t>(instance.tokens.size(), 1));
  check_answers(instance, {{place(marker + 1), place(marker + 1), place(marker + 2), size}});
}

using Parents = std::map<int32_t, std::set<int32_t>>;  ///< of every vertex that an edge names

/// Takes away vertices without parents until none is left. Throws Fault where the rest is cycles.
void check_acyclic(Parents parents) {
  while (!parents.empty()) {
    std::vector<int32_t> free;
    for (const auto& [vertex, above] : parents) {
      if (above.empty()) free.push_back(vertex);
    }
    if (free.empty()) throw Fault{1, "the edges hold a cycle"};
    for (const int32_t vertex : free) parents.erase(vertex);
    for (auto& [vertex, above] : parents) {
      for (const int32_t gone : free) above.erase(gone);
    }
  }
}

/// Fewest steps from a vertex to one without parents.
int depth_of(const Parents& parents, int32_t vertex) {
  std::set<int32_t> level = {vertex};
  for (int depth = 0;; ++depth) {
    std::set<int32_t> next;
    for (const int32_t below : level) {
      const std::set<int32_t>& above = parents.at(below);
      if (above.empty()) return depth;
      next.insert(above.begin(), above.end());
    }
    level = std::move(next);
  }
}

void check(const Brevo& task, const Instance& instance) {
  const std::vector<int32_t>& tokens = instance.tokens;
  const auto marker = std::find(tokens.begin(), tokens.end(), task.answer());
  const auto behind = marker == tokens.end() ? marker : marker + 1;
  if (const auto fault = task.find_answer_fault(instance, {behind, tokens.end()})) throw *fault;

  const BrevoConfig& config = task.config();
  std::optional<NameSet> names;
  if (config.names) {
    names.emplace(config.letters, config.min_name_length, config.max_name_length, config.max_nodes);
  }
  size_t at = 1;
  const auto read = [&] { return names ? names->read(tokens, at) : tokens[at++]; };
  Parents parents;
  while (tokens[at] != task.query()) {
    const int32_t parent = read();
    parents[parent];
    parents[read()].insert(parent);
  }
  ++at;
  const int32_t query = read();
  check_acyclic(parents);
  if (parents.at(query).empty()) {
    throw Fault{place(at), "a query of a vertex that depends on nothing"};
  }
  std::vector<uint8_t> scored(tokens.size());
  std::fill(scored.begin() + place(at), scored.end(), uint8_t{1});
  check_scored(instance, scored);
  check_answers(instance,
                {{place(at), place(at) + 1, place(tokens.size()), depth_of(parents, query)}});
}

void check(const Lano& task, const Instance& instance) {
  size_t at = 0;
  expect(instance.tokens, at, Lano::bos(), "bos");
  if (auto fault =
          find_sentence_fault(task, {instance.tokens.begin() + 1, instance.tokens.end()})) {
    ++fault->position;
    throw *fault;
  }
  check_scored(instance, std::vector<uint8_t>(instance.tokens.size(), 1));
  check_answers(instance, {});
}

template <class Kind>
bool check_as(const Task& task, const Instance& instance) {
  const auto* kind = dynamic_cast<const Kind*>(&task);
  if (kind) check(*kind, instance);
  return kind != nullptr;
}

}  // namespace

std::optional<Fault> find_sentence_fault(const Lano& task, const std::vector<int32_t>& terminals) {
  const Grammar& grammar = task.grammar();
  const Chart chart(grammar, terminals);
  if (chart.accepts()) return std::nullopt;
  const std::vector<double> truth = chart.next_token_distribution();
  for (size_t i = 0; i < terminals.size(); ++i) {
    const int32_t token = terminals[i];
    if (token < 1 || token > grammar.terminals()) {
      return Fault{static_cast<int32_t>(i), "not a terminal"};
    }
    if (truth[i * task.vocab_size() + token] > 0) continue;
    return Fault{static_cast<int32_t>(i),
                 "no sentence of the grammar goes on with " + std::to_string(token) + " here"};
  }
  return Fault{static_cast<int32_t>(terminals.size()), "the sentence is not over here"};
}

std::optional<Fault> find_fault(const Task& task, const Instance& instance) {
  return fault_of([&] {
    const bool is_known = check_as<Copy>(task, instance) || check_as<Depo>(task, instance) ||
                          check_as<Mano>(task, instance) || check_as<Brevo>(task, instance) ||
                          check_as<Lano>(task, instance);
    if (!is_known) throw std::logic_error("no validator of the task " + task.name());
  });
}

namespace {

constexpr size_t told_facts = 6;

/// Which facts the sentences before told.
using Told = std::array<bool, told_facts>;

/// The sentence about a fact not told yet that has most of its beginning in common with a text.
struct Match {
  Biography longer;  ///< what was read before, and the sentence
  size_t fact = 0;
  size_t common = 0;   ///< bytes from the text's beginning
  bool whole = false;  ///< all of the sentence
};

/// Appends sentence number `sentence`: the first says the name, the second the pronoun.
void tell(const CapoTemplate& wording,
          std::string subject,
          Fact fact,
          const std::string& value,
          size_t sentence,
          Biography& biography) {
  const auto add = [&](const std::string& text, std::optional<Fact> told) {
    const auto begin = place(biography.text.size());
    biography.text += text;
    if (told) biography.facts.push_back({*told, begin, place(biography.text.size())});
  };
  if (wording.before.empty()) subject[0] = static_cast<char>(std::toupper(subject[0]));
  add((sentence == 0 ? "" : " ") + wording.before, std::nullopt);
  add(subject,
      sentence == 0   ? std::optional(Fact::name)
      : sentence == 1 ? std::optional(Fact::pronoun)
                      : std::nullopt);
  add(wording.between, std::nullopt);
  add(value, fact);
  add(wording.after, std::nullopt);
}

Match closest_sentence(const Capo& capo,
                       const std::string& text,
                       const Biography& read,
                       size_t sentence,
                       const Told& told) {
  const Person about = capo.person(read.person);
  const std::string subject = capo.value(about, sentence == 0 ? Fact::name : Fact::pronoun);
  Match best;
  for (size_t index = 0; index < told_facts; ++index) {
    if (told[index]) continue;
    const auto fact = static_cast<Fact>(index);
    const std::string value = capo.value(about, fact);
    for (const CapoTemplate& wording : capo_templates()[index]) {
      Match match = {read, index, 0, false};
      tell(wording, subject, fact, value, sentence, match.longer);
      const std::string& right = match.longer.text;
      const size_t most = std::min(right.size(), text.size());
      while (match.common < most && right[match.common] == text[match.common]) ++match.common;
      match.whole = match.common == right.size();
      if (match.whole) return match;
      if (match.common >= best.common) best = std::move(match);
    }
  }
  return best;
}

}  // namespace

const char* fact_name(Fact fact) {
  static const char* const names[] = {"birth date",
                                      "birth city",
                                      "university",
                                      "field",
                                      "working city",
                                      "employer",
                                      "name",
                                      "pronoun"};
  return names[static_cast<size_t>(fact)];
}

std::optional<Fault> find_fault(const Capo& capo, const Biography& biography) {
  return fault_of([&] {
    if (biography.person < 0 || biography.person >= capo.people()) {
      throw Fault{0, "there is no person " + std::to_string(biography.person)};
    }
    const Person about = capo.person(biography.person);
    Biography read;
    read.person = biography.person;
    Told told = {};
    for (size_t sentence = 0; sentence < told_facts; ++sentence) {
      Match match = closest_sentence(capo, biography.text, read, sentence, told);
      const int32_t common = place(match.common);
      for (const FactSpan& span : match.longer.facts) {
        if (match.whole || common < span.begin || common >= span.end) continue;
        throw Fault{common,
                    std::string("the ") + fact_name(span.fact) + " is wrong: it is " +
                        capo.value(about, span.fact)};
      }
      if (!match.whole) {
        throw Fault{common, "no sentence about what is still to be told goes on like this"};
      }
      told[match.fact] = true;
      read = std::move(match.longer);
    }
    if (biography.text.size() > read.text.size()) {
      throw Fault{place(read.text.size()), "more text behind the six sentences"};
    }
    const bool recorded =
        std::equal(read.facts.begin(),
                   read.facts.end(),
                   biography.facts.begin(),
                   biography.facts.end(),
                   [](const FactSpan& a, const FactSpan& b) {
                     return a.fact == b.fact && a.begin == b.begin && a.end == b.end;
                   });
    if (!recorded) throw Fault{0, "facts are not recorded where they are told"};
  });
}

}  // namespace forge::data::tasks
