#include "core/data/tasks/tasks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

namespace forge::data::tasks {
namespace {

constexpr size_t most_parents = 4;
constexpr size_t most_children = 4;

int32_t place(size_t position) { return static_cast<int32_t>(position); }

}  // namespace

Brevo::Brevo(const BrevoConfig& config) : config_(config), sizes_(config.max_nodes) {
  if (config.names) {
    names_.emplace(
        config.letters, config.min_name_length, config.max_name_length, config.max_nodes);
  }
  end_of_words_ = names_ ? names_->end_of_letters() : config.max_nodes;
}

std::string Brevo::token_name(int32_t id) const {
  check_id(*this, id);
  if (id < end_of_words_) return std::to_string(id + 1);
  static const char* const marks[] = {"<query>", "<answer>", "<bos>", "<eos>"};
  return marks[id - end_of_words_];
}

int32_t Brevo::min_length() const {
  const int word = names_ ? config_.min_name_length : 1;
  return 4 + word * (2 + 1 + 2);  // bos, an edge, query, its answer with a leaf, three marks
}

void Brevo::add_word(int32_t word, bool carries_loss, Instance& instance) const {
  if (names_) {
    names_->add(word, carries_loss, instance);
  } else {
    instance.add(word, carries_loss);
  }
}

Brevo::Graph Brevo::draw_graph(int n, RandomStream& random) const {
  Graph graph;
  if (names_) {
    names_->draw_distinct(n, random, graph.words);
  } else {
    graph.words.resize(config_.max_nodes);
    std::iota(graph.words.begin(), graph.words.end(), 0);
    shuffle_front(graph.words, n, random);
    graph.words.resize(n);
  }
  graph.parents.resize(n);
  graph.children.resize(n);
  const bool paper = config_.variant == Variant::paper;
  const int most_leaves = paper ? (n - 1 + 3) / 4 : (n - 1) / 4 + 1;
  const int leaves = 1 + static_cast<int>(random.below(most_leaves));

  std::vector<int> candidates(leaves);  // vertices that may get another child
  std::iota(candidates.begin(), candidates.end(), 0);
  for (int child = leaves; child < n; ++child) {
    const size_t most = std::min<size_t>(most_parents, candidates.size());
    const size_t count = 1 + random.below(most);
    shuffle_front(candidates, count, random);
    graph.parents[child].assign(candidates.begin(),
                                candidates.begin() + static_cast<int64_t>(count));
    for (size_t i = count; i-- > 0;) {
      std::vector<int>& children = graph.children[candidates[i]];
      children.push_back(child);
      if (children.size() < most_children) continue;
      candidates[i] = candidates.back();
      candidates.pop_back();
    }
    candidates.push_back(child);
  }
  const int quarter = 3 * n / 4;
  graph.query = paper ? quarter + static_cast<int>(random.below(n - quarter)) : n - 1;
  return graph;
}

std::vector<char> Brevo::ancestors(const Graph& graph) {
  std::vector<char> found(graph.words.size());
  std::vector<int> open = {graph.query};
  found[graph.query] = 1;
  while (!open.empty()) {
    const int vertex = open.back();
    open.pop_back();
    for (const int parent : graph.parents[vertex]) {
      if (found[parent] != 0) continue;
      found[parent] = 1;
      open.push_back(parent);
    }
  }
  return found;
}

std::vector<int> Brevo::random_order(const Graph& graph, RandomStream& random) {
  // Backwards from the query: a vertex may come once all that depend on it have.
  const std::vector<char> wanted = ancestors(graph);
  std::vector<int> waiting(graph.words.size());
  for (size_t vertex = 0; vertex < wanted.size(); ++vertex) {
    for (const int child : graph.children[vertex]) waiting[vertex] += wanted[child];
  }
  std::vector<int> order;
  std::vector<int> open = {graph.query};
  while (!open.empty()) {
    std::swap(open[random.below(open.size())], open.back());
    const int vertex = open.back();
    open.pop_back();
    order.push_back(vertex);
    for (const int parent : graph.parents[vertex]) {
      if (--waiting[parent] == 0) open.push_back(parent);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

int Brevo::depth(const Graph& graph) {
  std::vector<char> seen(graph.words.size());
  std::vector<int> level = {graph.query};
  for (int distance = 0;; ++distance) {
    std::vector<int> next;
    for (const int vertex : level) {
      if (graph.parents[vertex].empty()) return distance;
      for (const int parent : graph.parents[vertex]) {
        if (seen[parent] == 0) next.push_back(parent);
        seen[parent] = 1;
      }
    }
    level = std::move(next);
  }
}

void Brevo::generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const {
  RandomStream random = instance_numbers("brevo", seed, split, index);
  const int n = split == Split::training ? sizes_.draw(random) : config_.max_nodes;
  const Graph graph = draw_graph(n, random);
  std::vector<std::pair<int, int>> edges;
  for (int child = 0; child < n; ++child) {
    for (const int parent : graph.parents[child]) edges.emplace_back(parent, child);
  }
  shuffle(edges, random);

  instance.clear();
  instance.add(bos());
  for (const auto& [parent, child] : edges) {
    add_word(graph.words[parent], false, instance);
    add_word(graph.words[child], false, instance);
  }
  instance.add(query());
  add_word(graph.words[graph.query], false, instance);
  const auto marker = static_cast<int32_t>(instance.tokens.size());
  instance.add(answer(), true);
  for (const int vertex : random_order(graph, random)) {
    add_word(graph.words[vertex], true, instance);
  }
  instance.add(eos(), true);
  instance.answers.push_back(
      {marker, marker + 1, static_cast<int32_t>(instance.tokens.size()), depth(graph)});
}

Prompt Brevo::prompt(const Instance& instance) const {
  const auto marker = std::find(instance.tokens.begin(), instance.tokens.end(), answer());
  Prompt prompt;
  if (marker == instance.tokens.end()) return prompt;
  prompt.tokens.assign(instance.tokens.begin(), marker + 1);
  prompt.stop = eos();
  // Right answers have the same tokens in another order.
  prompt.max_new_tokens = static_cast<int32_t>(instance.tokens.end() - marker - 1);
  return prompt;
}

void Brevo::score(const Instance& instance,
                  const std::vector<int32_t>& predicted,
                  Scores& scores) const {
  const double right = find_answer_fault(instance, predicted) ? 0 : 1;
  scores.add("answer_accuracy", right);
  for (const Answer& answer : instance.answers) {
    scores.add("answer_accuracy.depth_" + std::to_string(answer.group), right);
  }
}

int32_t Brevo::read_word(const std::vector<int32_t>& tokens, size_t& position) const {
  if (names_) return names_->read(tokens, position);
  if (position >= tokens.size()) throw Fault{place(position), "the text ends before a vertex"};
  const int32_t token = tokens[position];
  if (token < 0 || token >= end_of_words_) throw Fault{place(position), "not a vertex"};
  ++position;
  return token;
}

Brevo::Graph Brevo::read_graph(const std::vector<int32_t>& tokens) const {
  Graph graph;
  size_t position = 0;
  std::unordered_map<int32_t, int> vertices;
  const auto vertex_of = [&](int32_t word) {
    const auto [found, added] = vertices.emplace(word, static_cast<int>(graph.words.size()));
    if (added) {
      graph.words.push_back(word);
      graph.parents.emplace_back();
      graph.children.emplace_back();
    }
    return found->second;
  };
  std::set<std::pair<int, int>> edges;
  expect(tokens, position, bos(), "bos");
  while (position < tokens.size() && tokens[position] != query()) {
    const size_t begin = position;
    const int parent = vertex_of(read_word(tokens, position));
    const int child = vertex_of(read_word(tokens, position));
    if (!edges.emplace(parent, child).second) throw Fault{place(begin), "an edge comes twice"};
    graph.children[parent].push_back(child);
    graph.parents[child].push_back(parent);
    if (graph.children[parent].size() > most_children) {
      throw Fault{place(begin), "a fifth child of one vertex"};
    }
    if (graph.parents[child].size() > most_parents) {
      throw Fault{place(begin), "a fifth parent of one vertex"};
    }
  }
  expect(tokens, position, query(), "the query marker");
  const size_t begin = position;
  const auto asked = vertices.find(read_word(tokens, position));
  if (asked == vertices.end()) throw Fault{place(begin), "a query of a vertex without edges"};
  graph.query = asked->second;
  expect(tokens, position, answer(), "the answer marker");
  if (graph.words.size() > static_cast<size_t>(config_.max_nodes)) {
    throw Fault{place(begin), "more vertices than max_nodes"};
  }
  return graph;
}

void Brevo::check_answer(const Graph& graph, const std::vector<int32_t>& tokens) const {
  size_t position = 0;
  std::unordered_map<int32_t, int> vertices;
  for (size_t i = 0; i < graph.words.size(); ++i) {
    vertices.emplace(graph.words[i], static_cast<int>(i));
  }
  const std::vector<char> wanted = ancestors(graph);
  std::vector<char> written(graph.words.size());
  while (position < tokens.size() && tokens[position] != eos()) {
    const size_t begin = position;
    const auto found = vertices.find(read_word(tokens, position));
    if (found == vertices.end()) throw Fault{place(begin), "a vertex that the edges do not name"};
    const int vertex = found->second;
    if (wanted[vertex] == 0) throw Fault{place(begin), "the query does not depend on this vertex"};
    if (written[vertex] != 0) throw Fault{place(begin), "a vertex comes a second time"};
    for (const int parent : graph.parents[vertex]) {
      if (written[parent] == 0) throw Fault{place(begin), "a vertex comes before its parent"};
    }
    written[vertex] = 1;
  }
  if (written[graph.query] == 0) {
    throw Fault{place(position), "the answer ends without the query"};
  }
  expect(tokens, position, eos(), "eos");
  if (position != tokens.size()) throw Fault{place(position), "more text behind eos"};
}

std::optional<Fault> Brevo::find_answer_fault(const Instance& instance,
                                              const std::vector<int32_t>& written) const {
  return fault_of([&] { check_answer(read_graph(instance.tokens), written); });
}

}  // namespace forge::data::tasks
