#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/data/tasks/brevo.h"

// What is right and wrong in Brevo's texts and answers.
namespace forge::data::tasks {
namespace {

int32_t place(size_t position) { return static_cast<int32_t>(position); }

}  // namespace

int32_t Brevo::read_word(const std::vector<int32_t>& tokens, size_t& position) const {
  if (names_) return names_->read(tokens, position);
  if (position >= tokens.size()) throw Fault{place(position), "the text ends before a vertex"};
  const int32_t token = tokens[position];
  if (token < 0 || token >= end_of_words_) throw Fault{place(position), "not a vertex"};
  ++position;
  return token;
}

Brevo::Graph Brevo::read_graph(const std::vector<int32_t>& tokens, size_t& position) const {
  Graph graph;
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
    if (graph.children[parent].size() > brevo_most_children) {
      throw Fault{place(begin), "a fifth child of one vertex"};
    }
    if (graph.parents[child].size() > brevo_most_parents) {
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

void Brevo::check_answer(const Graph& graph,
                         const std::vector<int32_t>& tokens,
                         size_t& position) const {
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
}

std::optional<Fault> Brevo::find_answer_fault(const Instance& instance,
                                              const std::vector<int32_t>& written) const {
  return fault_of([&] {
    size_t at = 0;
    const Graph graph = read_graph(instance.tokens, at);
    at = 0;
    check_answer(graph, written, at);
    if (at != written.size()) throw Fault{place(at), "more text behind eos"};
  });
}

std::optional<Fault> Brevo::find_fault(const Instance& instance) const {
  return fault_of([&] {
    const std::vector<int32_t>& tokens = instance.tokens;
    size_t at = 0;
    const Graph graph = read_graph(tokens, at);
    // Each vertex that the order reaches has all its parents before it: what is left is a cycle.
    std::vector<size_t> missing(graph.words.size());
    std::vector<int> open;
    for (size_t i = 0; i < missing.size(); ++i) {
      missing[i] = graph.parents[i].size();
      if (missing[i] == 0) open.push_back(static_cast<int>(i));
    }
    for (size_t next = 0; next < open.size(); ++next) {
      for (const int child : graph.children[open[next]]) {
        if (--missing[child] == 0) open.push_back(child);
      }
    }
    if (open.size() != graph.words.size()) throw Fault{1, "the edges hold a cycle"};
    if (graph.parents[graph.query].empty()) {
      throw Fault{place(at), "a query of a vertex that depends on nothing"};
    }
    const int32_t marker = place(at) - 1;
    check_answer(graph, tokens, at);
    if (at != tokens.size()) throw Fault{place(at), "more text behind eos"};
    std::vector<uint8_t> scored(tokens.size());
    std::fill(scored.begin() + marker, scored.end(), uint8_t{1});
    check_scored(instance, scored);
    check_answers(instance, {{marker, marker + 1, place(at), depth(graph)}});
  });
}

}  // namespace forge::data::tasks
