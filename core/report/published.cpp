#include "core/report/published.h"

#include "core/base/error.h"
#include "core/config/reader.h"
#include "core/yaml/parse.h"

namespace forge::report {

using config::above;
using config::required;

template <class Visitor>
void fields(Visitor& visit, PublishedFigure& figure) {
  visit.field("config", figure.config, "config whose model it is", required());
  visit.field("eval_loss", figure.eval_loss, "nats a token", above(0));
  visit.field("tokens_per_second", figure.tokens_per_second, "in training", above(0));
  visit.field("peak_memory_gib", figure.peak_memory_gib, "GiB at the peak", above(0));
}

template <class Visitor>
void fields(Visitor& visit, Published& published) {
  visit.field("source", published.source, "who published them and where", required());
  visit.field("url", published.url, "address of the source");
  visit.field("setup", published.setup, "how they were made");
  visit.field("figures", published.figures, "one entry a config", required());
}

const PublishedFigure* Published::find(const std::string& config) const {
  for (const PublishedFigure& figure : figures) {
    if (figure.config == config) return &figure;
  }
  return nullptr;
}

Published published_from_node(const yaml::Node& node) {
  if (!node.is_mapping()) {
    throw Error("a file of published figures is a mapping, this is " + yaml::describe_kind(node),
                node.origin);
  }
  return config::read_fields<Published>(node);
}

Published read_published(const std::string& path) {
  return published_from_node(*yaml::parse_file(path));
}

}  // namespace forge::report
