#include "core/templating/filters.h"

#include <algorithm>
#include <array>

namespace forge::templating {
namespace {

std::array<const FilterTable*, 6> tables() {
  return {&text_filters(),
          &number_filters(),
          &sequence_filters(),
          &selection_filters(),
          &conversion_filters(),
          &web_filters()};
}

}  // namespace

FilterFunction find_filter(const std::string& name) {
  for (const FilterTable* table : tables()) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

std::vector<std::string> filter_names() {
  std::vector<std::string> names;
  for (const FilterTable* table : tables()) {
    for (const auto& [name, function] : *table) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace forge::templating
