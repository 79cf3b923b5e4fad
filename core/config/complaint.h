#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/keys.h"
#include "core/config/layers.h"

/// How the checks of a config say what is wrong.
namespace forge::config {

/// Place of a setting's layer in the order in which layers are applied.
int rank(const Setting& setting);

/// An Error at the place of the key, of several that disagree, that was set last.
Error complaint(const Draft& draft,
                const std::vector<std::string>& keys,
                const std::string& message,
                const std::string& hint = "");

/// "model.num_heads 5"
std::string quoted(const std::string& key, long long value);

/// Throws where text is none of a few words which are not an enumeration of the schema.
void check_word(const Draft& draft,
                const std::string& key,
                const std::string& word,
                const std::vector<std::string>& known);

/// Refuses a value that nothing reads because of the value of the key `because`. Where an earlier
/// layer than the one that gave `because` had set it, it goes back to its default instead: who
/// turns a part of a model off need not know how it was set up. A default in so many words passes.
template <class T>
void refuse_unused(Draft& draft,
                   const std::string& key,
                   T& value,
                   const T& default_value,
                   const std::string& because,
                   const std::string& reason,
                   const std::string& hint) {
  if (value == default_value) return;
  const Setting& setting = draft.origins.at(key).set_by;
  if (rank(setting) >= rank(draft.origins.at(because).set_by)) {
    throw Error(key + " " + setting.text + " " + reason, setting.origin, hint);
  }
  value = default_value;
  derive(draft, key, because, default_text(*find_key(key)));
}

}  // namespace forge::config
