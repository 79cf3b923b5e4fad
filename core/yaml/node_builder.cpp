#include "core/yaml/node_builder.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/python/plain_scalar.h"
#include "core/python/unicode.h"
#include "core/yaml/scalar_scan.h"

namespace forge::yaml {
namespace {

using python::PlainScalar;

/// Limit of remembered overridden values. Merges of merges would double them without end.
constexpr size_t max_history = 64;

constexpr int64_t max_exact_integer = int64_t{1} << 53;  ///< that a double holds exactly

/// What makes a key the same as another: 1, 1.0 and yes are one key, as in Python's dicts.
std::string identity_of(const Entry& entry) {
  if (entry.key_is_string) return "s" + entry.key;
  const PlainScalar scalar = python::resolve_plain_scalar(entry.key);
  switch (scalar.kind) {
    case PlainScalar::Kind::null: return "null";
    case PlainScalar::Kind::boolean: return scalar.boolean ? "n1.0" : "n0.0";
    case PlainScalar::Kind::integer:
      if (scalar.overflow) return "n" + entry.key;
      if (scalar.integer > max_exact_integer || scalar.integer < -max_exact_integer)
        return "n" + std::to_string(scalar.integer);
      return "n" + shortest(static_cast<double>(scalar.integer));
    case PlainScalar::Kind::real: return "n" + shortest(scalar.real == 0 ? 0.0 : scalar.real);
    default: return "p" + entry.key;
  }
}

// Limits against malicious input. Real configs stay below a hundredth of each.
constexpr size_t max_depth = 200;
constexpr size_t max_tree_size = 1'000'000;
constexpr size_t max_merged_entries = 1'000'000;

constexpr const char* standard_prefix = "tag:yaml.org,2002:";

bool is_standard(const std::string& tag) { return starts_with(tag, standard_prefix); }

/// Tag as the author wrote it: "?" and "!" are yaml-cpp's for plain and quoted scalars.
std::string written_tag(const std::string& tag) { return tag == "?" || tag == "!" ? "" : tag; }

[[noreturn]] void refuse(const PlainScalar& scalar, const Node& node) {
  const std::string quoting = "quote it to make it a string";
  if (scalar.kind == PlainScalar::Kind::timestamp) {
    throw Error("'" + node.text + "' is a date in YAML 1.1, which a config cannot hold",
                node.origin,
                quoting);
  }
  if (scalar.kind == PlainScalar::Kind::integer) {
    throw Error("the integer " + node.text + " does not fit 64 bits", node.origin);
  }
  throw Error("'" + node.text + "' has a meaning of its own as a key and is no value",
              node.origin,
              quoting);
}

/// Gives a node the plain scalar's kind and value. A key needs no more than its kind.
void apply(const PlainScalar& scalar, bool is_key, Node& node) {
  switch (scalar.kind) {
    case PlainScalar::Kind::null: node.kind = Node::Kind::null; break;
    case PlainScalar::Kind::boolean:
      node.kind = Node::Kind::boolean;
      node.boolean = scalar.boolean;
      break;
    case PlainScalar::Kind::integer:
      if (scalar.overflow && !is_key) refuse(scalar, node);
      node.kind = Node::Kind::integer;
      node.integer = scalar.integer;
      break;
    case PlainScalar::Kind::real:
      node.kind = Node::Kind::real;
      node.real = scalar.real;
      break;
    case PlainScalar::Kind::timestamp: refuse(scalar, node);
    case PlainScalar::Kind::merge:
    case PlainScalar::Kind::value:
      if (!is_key) refuse(scalar, node);
      node.kind = Node::Kind::string;
      break;
    case PlainScalar::Kind::string: node.kind = Node::Kind::string; break;
  }
}

/// `!!int 5` and its like: the plain meaning must be of the stated type.
void apply_standard_tag(const std::string& tag, bool is_key, Node& node) {
  const std::string type = tag.substr(std::string(standard_prefix).size());
  if (type == "str") return;
  if (type.empty() && node.text.empty()) return apply({PlainScalar::Kind::null}, is_key, node);
  PlainScalar scalar = python::resolve_plain_scalar(node.text);
  if (type == "float" && scalar.kind == PlainScalar::Kind::integer) {
    scalar.kind = PlainScalar::Kind::real;
    scalar.real = static_cast<double>(scalar.integer);
  }
  const bool fits = (type == "int" && scalar.kind == PlainScalar::Kind::integer) ||
                    (type == "null" && scalar.kind == PlainScalar::Kind::null) ||
                    (type == "bool" && scalar.kind == PlainScalar::Kind::boolean) ||
                    (type == "float" && scalar.kind == PlainScalar::Kind::real);
  if (!fits) throw Error("'" + node.text + "' cannot be read as !!" + type, node.origin);
  apply(scalar, is_key, node);
}

/// Gives each event of yaml-cpp as a value, with anchors by name: their numbers differ from
/// document to document.
class EventAdapter : public YAML::EventHandler {
 public:
  explicit EventAdapter(const std::function<void(const Event&)>& take) : take_(take) {}
  int documents() const { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    ++documents_;
    take(Event::Kind::document, mark, 0);
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    take(Event::Kind::null, mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    pending_anchor_ = names_[anchor];
    take(Event::Kind::alias, mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    take(Event::Kind::scalar, mark, anchor, tag, value);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    take(Event::Kind::sequence_begin, mark, anchor, tag, "", style);
  }
  void OnSequenceEnd() override { take(Event::Kind::sequence_end, {}, 0); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    take(Event::Kind::mapping_begin, mark, anchor, tag, "", style);
  }
  void OnMapEnd() override { take(Event::Kind::mapping_end, {}, 0); }
  void OnAnchor(const YAML::Mark&, const std::string& name) override { pending_anchor_ = name; }

 private:
  void take(Event::Kind kind,
            const YAML::Mark& mark,
            YAML::anchor_t anchor,
            const std::string& tag = "",
            const std::string& value = "",
            YAML::EmitterStyle::value style = YAML::EmitterStyle::Default) {
    Event event;
    event.kind = kind;
    event.is_flow = style == YAML::EmitterStyle::Flow;
    event.mark = mark;
    if (anchor != 0) names_[anchor] = event.anchor = std::exchange(pending_anchor_, "");
    event.tag = tag;
    event.value = value;
    take_(event);
  }

  const std::function<void(const Event&)>& take_;
  int documents_ = 0;
  std::string pending_anchor_;
  std::unordered_map<YAML::anchor_t, std::string> names_;
};

}  // namespace

void MappingBuilder::merge_mapping(const Node& mapping) {
  if (!mapping.is_mapping()) {
    throw Error("'<<' merges mappings, but this is " + describe_kind(mapping), mapping.origin);
  }
  merged_.insert(merged_.end(), mapping.entries.begin(), mapping.entries.end());
}

void MappingBuilder::merge(const Node& value) {
  if (!value.is_sequence()) return merge_mapping(value);
  // Of several mappings the first wins, so it comes last.
  for (auto item = value.items.rbegin(); item != value.items.rend(); ++item) merge_mapping(**item);
}

void MappingBuilder::put(Entry entry, bool is_own) {
  entry.written = ++written_;
  const auto [found, is_new] = index_.emplace(identity_of(entry), entries_.size());
  if (is_new) {
    entries_.push_back(std::move(entry));
    owned_.push_back(is_own);
    return;
  }
  Entry& replaced = entries_[found->second];
  entry.repeats = owned_[found->second] ? replaced.repeats + 1 : 0;
  owned_[found->second] = is_own;
  std::vector<NodePtr> history = std::move(entry.overridden);
  history.push_back(replaced.value);
  history.insert(history.end(), replaced.overridden.begin(), replaced.overridden.end());
  if (history.size() > max_history) history.resize(max_history);
  entry.overridden = std::move(history);
  replaced = std::move(entry);
}

std::vector<Entry> MappingBuilder::finish() {
  for (Entry& entry : merged_) {
    entry.repeats = 0;
    put(std::move(entry), false);
  }
  for (Entry& entry : own_) put(std::move(entry), true);
  return std::move(entries_);
}

void parse_events(const std::string& text, const std::function<void(const Event&)>& take) {
  EventAdapter adapter(take);
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  // yaml-cpp finds documents without end behind a stray ','.
  while (adapter.documents() < 2 && parser.HandleNextDocument(adapter)) {
  }
}

void NodeBuilder::add(const Event& event) {
  if (!event.anchor.empty() && event.kind != Event::Kind::alias) require_new_anchor(event);
  switch (event.kind) {
    case Event::Kind::document: return begin_document(event);
    case Event::Kind::null: return add_null(event);
    case Event::Kind::scalar: return add_scalar(event);
    case Event::Kind::sequence_begin:
    case Event::Kind::mapping_begin: return open(event);
    case Event::Kind::sequence_end: return close_sequence();
    case Event::Kind::mapping_end: return close_mapping();
    case Event::Kind::alias: break;
  }
  const auto found = anchored_.find(event.anchor);
  if (found == anchored_.end())
    throw Error("this alias stands inside the node that it names", place(event.mark));
  add_finished(found->second);
}

void NodeBuilder::begin_document(const Event& event) {
  if (has_document_) {
    throw Error("content after the end of the YAML document",
                place(event.mark),
                "check the indentation; only one document is allowed");
  }
  has_document_ = true;
}

void NodeBuilder::require_new_anchor(const Event& event) {
  const std::string& name = event.anchor;
  if (!std::all_of(name.begin(), name.end(), is_anchor_character) && python::is_ascii(name)) {
    throw Error("'" + name + "' cannot be the name of an anchor",
                place(event.mark),
                "it may hold letters, digits, '_' and '-'");
  }
  if (!anchor_names_.insert(name).second)
    throw Error("the anchor '&" + name + "' is defined twice", place(event.mark));
}

std::shared_ptr<Node> NodeBuilder::make_node(const Event& event, Node::Kind kind) const {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->origin = place(event.mark);
  node->anchor = event.anchor;
  return node;
}

/// How a null was written: "~", "null" …, or "" where nothing was.
std::string NodeBuilder::null_text(const YAML::Mark& mark) const {
  if (mark.pos < 0 || static_cast<size_t>(mark.pos) >= text_.size()) return "";
  const std::string_view rest = std::string_view(text_).substr(static_cast<size_t>(mark.pos));
  for (const char* word : {"~", "null", "Null", "NULL"}) {
    if (!starts_with(rest, word)) continue;
    const std::string_view behind = rest.substr(std::string_view(word).size());
    if (behind.empty() ||
        std::string_view(" \t\n\r,]}:#").find(behind[0]) != std::string_view::npos)
      return word;
  }
  return "";
}

void NodeBuilder::add_null(const Event& event) {
  const bool anchored = !event.anchor.empty();
  auto node = make_node(event, Node::Kind::null);
  node->text = anchored ? "" : null_text(event.mark);
  // The mark of a value that is not there lies on whatever comes next.
  const bool has_key = !open_.empty() && open_.back().key;
  const bool is_absent = node->text.empty() && !anchored;
  if (is_absent && has_key) node->origin = open_.back().key->origin;
  if (is_absent && has_key) require_colon(*open_.back().key);
  if (is_absent && expects_key()) throw Error("a key is missing before ':' or ','", node->origin);
  if (is_absent && !open_.empty() && open_.back().is_flow && open_.back().node->is_sequence()) {
    throw Error("an item is missing before ','", node->origin);
  }
  add_finished({std::move(node)});
}

/// Whether `?` stands before a key. Such a key needs no colon.
bool NodeBuilder::is_explicit_key(const YAML::Mark& mark) const {
  const auto position = static_cast<size_t>(mark.pos);
  const size_t line = text_.find_last_of('\n', position) + 1;
  const size_t first = text_.find_first_not_of(" -", line);
  return first < position && text_[first] == '?';
}

/// A key whose value is absent still needs its colon; yaml-cpp takes any word for a key.
void NodeBuilder::require_colon(const Node& key) const {
  const OpenCollection& mapping = open_.back();
  if (mapping.is_flow || mapping.key_mark.pos < 0) return;
  if (is_explicit_key(mapping.key_mark)) return;
  const auto position = static_cast<size_t>(mapping.key_mark.pos);
  const size_t end = std::min(text_.find('\n', position), text_.size());
  const size_t begin = std::min(skip_properties(text_, position), end);
  const size_t size = key.plain ? std::min(key.text.size(), end - begin) : 0;
  if (text_.substr(begin + size, end - begin - size).find(':') != std::string::npos) return;
  throw Error("'" + key.text + "' stands where 'key: value' is expected",
              key.origin,
              "write '" + key.text + ":' if it is a key without a value");
}

/// A value on a line of its own must be indented more than its key.
void NodeBuilder::require_indentation(const Node& scalar, const YAML::Mark& mark) const {
  if (open_.empty() || !open_.back().key || open_.back().is_flow) return;
  const YAML::Mark& key = open_.back().key_mark;
  if (key.pos < 0 || mark.line <= key.line || mark.column > key.column) return;
  if (is_explicit_key(key)) return;
  const size_t begin = skip_properties(text_, static_cast<size_t>(mark.pos));
  if (text_.find_first_of("|>", begin) == begin)
    return;  // a block scalar: its text is indented, not its header
  throw Error("'" + scalar.text + "' stands where 'key: value' is expected",
              scalar.origin,
              "indent it if it is the value of the key above");
}

/// Corrects yaml-cpp on scalars that are not plain: a quotation mark at the very end of the text
/// opens nothing, and `>+` keeps all line breaks at the end of its text.
void NodeBuilder::fix_yaml_cpp_scalar(Node& scalar, const YAML::Mark& mark) const {
  if (scalar.plain || mark.pos < 0) return;
  const size_t begin = skip_properties(text_, static_cast<size_t>(mark.pos));
  const char style = begin < text_.size() ? text_[begin] : '\0';
  if (style == '\'' || style == '"') {
    if (!quoted_scalar_end(text_, begin))
      throw Error("a quotation mark is not closed", scalar.origin);
  } else if (style == '>') {
    const std::string_view whole =
        std::string_view(text_).substr(begin, block_scalar_end(text_, begin) - begin);
    const std::string_view header = whole.substr(0, whole.find_first_of(" #\n"));
    const size_t kept = scalar.text.find_last_not_of('\n') + 1,
                 last = whole.find_last_not_of(" \n");
    if (header.find('+') == std::string_view::npos || kept == 0) return;
    scalar.text.resize(kept);
    scalar.text.append(static_cast<size_t>(std::count(
                           whole.begin() + static_cast<std::ptrdiff_t>(last), whole.end(), '\n')),
                       '\n');
  }
}

/// Whether the next node is a mapping's key.
bool NodeBuilder::expects_key() const {
  return !open_.empty() && open_.back().node->is_mapping() && !open_.back().key;
}

void NodeBuilder::resolve_scalar(Node& node, const std::string& tag) const {
  node.kind = Node::Kind::string;
  node.plain = tag != "!";
  if (tag == "?") {
    apply(python::resolve_plain_scalar(node.text), expects_key(), node);
  } else if (is_standard(tag)) {
    apply_standard_tag(tag, expects_key(), node);
  } else {
    node.tag = written_tag(tag);
    if (!node.tag.empty() && node.text.empty()) node.kind = Node::Kind::null;
  }
}

void NodeBuilder::add_scalar(const Event& event) {
  auto node = make_node(event, Node::Kind::string);
  node->text = event.value;
  resolve_scalar(*node, event.tag);
  fix_yaml_cpp_scalar(*node, event.mark);
  require_indentation(*node, event.mark);
  if (expects_key()) open_.back().key_mark = event.mark;
  add_finished({std::move(node)});
}

void NodeBuilder::open(const Event& event) {
  const bool is_mapping = event.kind == Event::Kind::mapping_begin;
  if (open_.size() >= max_depth) {
    throw Error("the YAML is nested more than 200 deep", place(event.mark));
  }
  OpenCollection collection;
  collection.node = make_node(event, is_mapping ? Node::Kind::mapping : Node::Kind::sequence);
  collection.node->plain = false;
  collection.is_flow = event.is_flow;
  if (!is_standard(event.tag)) {
    collection.node->tag = written_tag(event.tag);
  } else if (event.tag != std::string(standard_prefix) + (is_mapping ? "map" : "seq")) {
    const std::string shown = "!!" + event.tag.substr(std::string(standard_prefix).size());
    throw Error("the tag " + shown + " is not supported here", collection.node->origin);
  }
  open_.push_back(std::move(collection));
}

void NodeBuilder::close_sequence() {
  OpenCollection collection = std::move(open_.back());
  open_.pop_back();
  add_finished({std::move(collection.node), collection.tree_size, collection.depth});
}

void NodeBuilder::close_mapping() {
  OpenCollection collection = std::move(open_.back());
  open_.pop_back();
  merged_entries_ += collection.mapping.merged_count();
  if (merged_entries_ > max_merged_entries) {
    throw Error("the merges of this YAML copy more than a million entries",
                collection.node->origin);
  }
  collection.node->entries = collection.mapping.finish();
  if (open_.empty()) {  // the root: names that begin with '.' only hold anchors
    std::vector<Entry>& entries = collection.node->entries;
    const auto is_hidden = [](const Entry& entry) {
      return entry.key_is_string && starts_with(entry.key, ".");
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), is_hidden), entries.end());
  }
  add_finished({std::move(collection.node), collection.tree_size, collection.depth});
}

/// Gives a finished node to the collection that is open, or makes it the root.
void NodeBuilder::add_finished(FinishedNode finished) {
  if (!finished.node->anchor.empty()) anchored_[finished.node->anchor] = finished;
  if (open_.empty()) {
    root_ = std::move(finished);
    return;
  }
  OpenCollection& parent = open_.back();
  parent.tree_size += finished.tree_size;
  parent.depth = std::max(parent.depth, finished.depth + 1);
  if (parent.depth > max_depth) {
    throw Error("the aliases of this YAML nest it more than 200 deep", finished.node->origin);
  }
  if (parent.tree_size > max_tree_size) {
    throw Error("the aliases of this YAML expand to more than a million nodes",
                finished.node->origin);
  }
  if (parent.node->is_sequence()) {
    parent.node->items.push_back(std::move(finished.node));
    return;
  }
  if (!parent.key) {
    if (!finished.node->is_scalar())
      throw Error("a key must be a scalar, not " + describe_kind(*finished.node),
                  finished.node->origin);
    parent.key = std::move(finished.node);
    return;
  }
  const NodePtr key = std::exchange(parent.key, nullptr);
  if (key->plain && key->tag.empty() && key->text == "<<")
    return parent.mapping.merge(*finished.node);
  Entry entry;
  entry.key = key->text;
  entry.key_is_string = key->kind == Node::Kind::string;
  entry.key_origin = key->origin;
  entry.value = std::move(finished.node);
  parent.mapping.add(std::move(entry));
}

}  // namespace forge::yaml
