#include "core/config/complaint.h"

#include <algorithm>

#include "core/base/text.h"

namespace forge::config {

int rank(const Setting& setting) {
  if (setting.layer == default_layer) return 0;
  if (setting.layer == config_layer) return 1;
  return setting.layer == command_line_layer ? 3 : 2;
}

Error complaint(const Draft& draft,
                const std::vector<std::string>& keys,
                const std::string& message,
                const std::string& hint) {
  const Setting* guilty = nullptr;
  for (const std::string& key : keys) {
    const Setting& setting = draft.origins.at(key).set_by;
    if (!guilty || rank(setting) > rank(*guilty)) guilty = &setting;
  }
  return Error(message, guilty->origin, hint);
}

std::string quoted(const std::string& key, long long value) {
  return key + " " + std::to_string(value);
}

void check_word(const Draft& draft,
                const std::string& key,
                const std::string& word,
                const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw complaint(draft,
                  {key},
                  "'" + key + "' must be one of " + join(known, ", ") + ", not '" + word + "'",
                  did_you_mean(word, known));
}

}  // namespace forge::config
