#include "core/graph/tag.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::graph {
namespace {

struct NamedWord {
  const char* name;
  Tag::Word word;
};
constexpr NamedWord words[] = {{"call", Tag::Word::singleton},
                               {"singleton", Tag::Word::singleton},
                               {"factory", Tag::Word::factory},
                               {"partial", Tag::Word::partial},
                               {"lambda", Tag::Word::partial},
                               {"meta", Tag::Word::meta},
                               {"var", Tag::Word::variable},
                               {"list", Tag::Word::list},
                               {"tuple", Tag::Word::tuple},
                               {"dict", Tag::Word::dict},
                               {"dlist", Tag::Word::dlist}};

Tag::Word word_of(const std::string& name, const yaml::Node& node) {
  std::vector<std::string> known;
  for (const NamedWord& candidate : words) {
    if (candidate.name == name) return candidate.word;
    known.push_back(std::string("!") + candidate.name);
  }
  std::string hint = did_you_mean("!" + name, known);
  if (hint.empty()) hint = "the tags are " + join(known, ", ");
  throw Error("unknown tag '" + node.tag + "'", node.origin, hint);
}

}  // namespace

Tag parse_tag(const yaml::Node& node) {
  Tag tag;
  if (node.tag.empty()) return tag;
  const std::string written = node.tag.substr(1);
  const size_t end = std::min(written.find_first_of(":@"), written.size());
  const std::string name = written.substr(0, end);
  tag.word = word_of(name, node);
  const std::string suffix = end < written.size() ? written.substr(end + 1) : "";
  if (tag.word == Tag::Word::variable && end < written.size()) {
    throw Error("'!var' has no suffix, but this is '" + node.tag + "'",
                node.origin,
                "write !var " + (suffix.empty() ? "NAME" : suffix));
  }
  const size_t at = suffix.find('@');
  tag.constructor = suffix.substr(0, at);
  if (at != std::string::npos) tag.identity = suffix.substr(at + 1);
  if (tag.is_call() && tag.constructor.empty()) {
    throw Error("'!" + name + "' does not say what to call",
                node.origin,
                "name it behind the tag, as in !" + name + ":module:function");
  }
  return tag;
}

}  // namespace forge::graph
