#pragma once

#include "core/base/random.h"
#include "core/data/tasks/task.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {

/// Depo (Part 4.1, section 2): n names form one random cycle, told as its n steps in random order,
///
///     <bos> a b  c a  b c  …  <hop k> name <answer> name'  <hop k> …
///
/// then min(n, max_queries) questions about distinct names: which name lies k steps on. k is
/// uniform in 1 … K and may lead around the cycle. The answer marker and the answer carry loss. For
/// training n follows SizeDistribution; for evaluation n = N and k is a power of two up to K, or K,
/// or 24 where K = 32.
///
/// Ids: letters 1 … 2V, hop markers 1 … K, answer marker, bos.
class Depo : public Task {
 public:
  explicit Depo(const DepoConfig& config);

  std::string name() const override { return "depo"; }
  int32_t vocab_size() const override { return bos() + 1; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override;
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// token_accuracy and answer_accuracy over the names of answers, in all and by hops
  /// ("answer_accuracy.hop_8"). The paper reports K and K/2 hops.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  const DepoConfig& config() const { return config_; }
  int32_t hop(int k) const { return names_.end_of_letters() + k - 1; }
  int32_t answer() const { return hop(config_.max_hops) + 1; }
  int32_t bos() const { return answer() + 1; }

 private:
  DepoConfig config_;
  NameSet names_;
  SizeDistribution sizes_;
  std::vector<int> evaluated_hops_;
};

/// Brevo (Part 4.1, section 2): the edges of a DAG in random order, then all that one vertex
/// depends on, in an order in which every vertex comes after its parents,
///
///     <bos> a c  a d  c d  …  <query> d <answer> a c d <eos>
///
/// Vertices come one after another. The first ones are leaves; each later one draws 1 … 4 parents
/// from earlier ones that have less than four children. Leaves are 1 … ceil((n-1)/4) in number, in
/// the code's variant 1 … floor((n-1)/4) + 1; the query is one of the last quarter of the vertices,
/// in the code's variant the last. A vertex without edges is not mentioned. Answer marker, answer
/// and eos carry loss. For training n follows SizeDistribution; for evaluation n = N.
///
/// Ids: vertices 1 … N or the letters of names, query, answer, bos, eos; four tokens for the four
/// marks, as the paper says (the code's eos is the answer marker).
class Brevo : public Task {
 public:
  explicit Brevo(const BrevoConfig& config);

  std::string name() const override { return "brevo"; }
  int32_t vocab_size() const override { return eos() + 1; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override;
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// Nothing where `written` is a right answer to the instance's question, eos included; any order
  /// with parents first is. The fault's position counts from the first token written.
  std::optional<Fault> find_answer_fault(const Instance& instance,
                                         const std::vector<int32_t>& written) const;

  EvalMode eval_mode() const override { return EvalMode::greedy; }
  Prompt prompt(const Instance& instance) const override;
  /// answer_accuracy, all or nothing, in all and by depth ("answer_accuracy.depth_3"): the shortest
  /// way from the query to a vertex without parents.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  const BrevoConfig& config() const { return config_; }
  int32_t query() const { return end_of_words_; }
  int32_t answer() const { return end_of_words_ + 1; }
  int32_t bos() const { return end_of_words_ + 2; }
  int32_t eos() const { return end_of_words_ + 3; }

 private:
  /// A DAG whose vertices are numbered in the order of their first mention or drawing.
  struct Graph {
    std::vector<int32_t> words;  ///< per vertex: its number or the rank of its name
    std::vector<std::vector<int>> parents;
    std::vector<std::vector<int>> children;
    int query = 0;
  };
  Graph draw_graph(int n, RandomStream& random) const;
  void add_word(int32_t word, bool carries_loss, Instance& instance) const;
  int32_t read_word(const std::vector<int32_t>& tokens, size_t& position) const;
  /// Reads a text up to its answer marker. Throws Fault.
  Graph read_graph(const std::vector<int32_t>& tokens) const;
  /// Throws Fault where the tokens are not an answer and eos.
  void check_answer(const Graph& graph, const std::vector<int32_t>& tokens) const;

  static std::vector<char> ancestors(const Graph& graph);  ///< of the query, which is one
  static std::vector<int> random_order(const Graph& graph, RandomStream& random);
  static int depth(const Graph& graph);

  BrevoConfig config_;
  std::optional<NameSet> names_;
  SizeDistribution sizes_;
  int32_t end_of_words_;
};

/// Mano (Part 4.1, section 2): arithmetic modulo 23 that has to be done in the head,
///
///     <bos> <len 3> * a + b - c d <ans> value
///
/// A tree of l operators, each + - or *, in prefix notation; the left side of l operators has
/// 0 … l-1 of them, uniformly. l is uniform in 1 … L for training and L for evaluation. All tokens
/// carry loss.
///
/// Ids of the paper's variant: + - *, lengths 1 … L, ans, operands 0 … 22, bos. In the code's
/// variant the answer marker repeats the length and, with `synonyms`, operators, markers and bos
/// have a second token each, one of the two drawn at random: + - * +' -' *', then for each length
/// <len l> <len l>' <ans l> <ans l>', operands, bos', bos.
class Mano : public Task {
 public:
  static constexpr int modulus = 23;

  explicit Mano(const ManoConfig& config);

  std::string name() const override { return "mano"; }
  int32_t vocab_size() const override { return first_bos_ + (code_ ? 2 : 1); }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override { return 7; }
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// value_accuracy, in all and by operators ("value_accuracy.operators_16"). A model that always
  /// says 0 is right in about 7 % of cases, for products are 0 more often.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  /// Whether some tokens have a second form, a name that ends in "'".
  bool has_synonyms() const { return synonyms_; }
  int32_t operand(int value) const { return first_operand_ + value; }

 private:
  /// A kind of token with its number: which operator, length or value it is.
  enum class Kind { operation, length, answer, operand, bos };
  int32_t id_of(Kind kind, int number, int synonym) const;
  /// Appends a tree of `size` operators and gives its value.
  int draw_expression(int size, RandomStream& random, Instance& instance) const;
  int32_t draw(Kind kind, int number, RandomStream& random) const;

  bool code_;
  bool synonyms_;
  int max_operators_;
  int32_t first_length_;
  int32_t first_operand_;
  int32_t first_bos_;
  std::vector<std::string> names_;  ///< per id
};

/// Token copy (Part 4.1, figures 5 and 18): a uniform permutation of 1 … N, then once more,
///
///     <bos> 4 2 3 1 <query> 4 2 3 1
///
/// The copied tokens alone carry loss; with `scored_tokens` only the first ones.
///
/// Ids: 1 … N, query, bos.
class Copy : public Task {
 public:
  explicit Copy(const CopyConfig& config);

  std::string name() const override { return "copy"; }
  int32_t vocab_size() const override { return length_ + 2; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override { return 2 * length_ + 2; }
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// token_accuracy, sequence_accuracy, and token_accuracy.first_1, _2 and _4 over the first
  /// copied tokens alone.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  int32_t query() const { return length_; }
  int32_t bos() const { return length_ + 1; }
  /// The copied tokens that are scored.
  Answer answer() const;

 private:
  int32_t length_;
  int32_t scored_tokens_;
};

}  // namespace forge::data::tasks
