#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace forge::lint {

/// A plain scalar that readers of YAML 1.1 (PyYAML) and of YAML 1.2 (its core schema) take for
/// different values.
struct YamlVersionDifference {
  std::string in_1_1;  ///< "true", "the number 8", "text"
  std::string in_1_2;
  std::string advice;            ///< how to write it so that both agree
  bool is_text_or_real = false;  ///< like 1e-3: text in YAML 1.1, a real number in 1.2
};

/// Nothing where both read the same.
std::optional<YamlVersionDifference> yaml_version_difference(std::string_view plain);

}  // namespace forge::lint
