#pragma once

#include "core/data/tasks/task.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {

/// Of one vertex of Brevo.
constexpr size_t brevo_most_parents = 4;
constexpr size_t brevo_most_children = 4;

/// Brevo (Part 4.1, section 2): the edges of a DAG in random order, then all that one vertex
/// depends on, in an order in which every vertex comes after its parents,
///
///     <bos> a c  a d  c d  …  <query> d <answer> a c d <eos>
///
/// Vertices come one after another. The first ones are leaves; each later one draws 1 … 4 parents
/// from earlier ones that have less than four children. Leaves are 1 … ceil((n-1)/4) in number, in
/// the code's variant 1 … floor((n-1)/4) + 1; the query is one of the last quarter of the vertices,
/// in the code's variant the last. A vertex without edges is not told of. Answer marker, answer and
/// eos carry loss. For training n follows SizeDistribution; for evaluation n = N.
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
  /// Reads a text up to and with its answer marker. Throws Fault.
  Graph read_graph(const std::vector<int32_t>& tokens, size_t& position) const;
  /// Reads an answer up to and with eos. Throws Fault.
  void check_answer(const Graph& graph, const std::vector<int32_t>& tokens, size_t& position) const;

  static std::vector<char> ancestors(const Graph& graph);  ///< of the query, which is one
  static std::vector<int> random_order(const Graph& graph, RandomStream& random);
  static int depth(const Graph& graph);

  BrevoConfig config_;
  std::optional<NameSet> names_;
  SizeDistribution sizes_;
  int32_t end_of_words_;
};

}  // namespace forge::data::tasks
