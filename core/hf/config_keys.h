#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace forge::hf {

/// A value as it may stand in a message: no deep tree is walked and no screen filled.
std::string shown(const nlohmann::json& value);

/// The keys of a config.json. Each accessor checks the value's type and remembers the key; a
/// missing key is as good as null. Throws Error naming the key.
class ConfigKeys {
 public:
  /// `json` is an object and outlives this.
  explicit ConfigKeys(const nlohmann::json& json) : json_(json) {}
  explicit ConfigKeys(nlohmann::json&& json) = delete;

  const nlohmann::json& value(const char* key);
  /// A size from 1 on; 0 for `otherwise`: it must be there.
  int size(const char* key, int64_t otherwise = 0);
  /// A number above 0.
  double number(const char* key, double otherwise);
  bool flag(const char* key, bool otherwise);
  std::string text(const char* key, const std::string& otherwise);

  /// Throws Error with the reason at a key under whose value transformers computes something that
  /// forge does not.
  void refuse_what_changes_the_function();
  /// Keys that nobody asked for, but for those that are known to change no logit.
  std::vector<std::string> unknown() const;

 private:
  const nlohmann::json& json_;
  std::set<std::string> used_;
};

}  // namespace forge::hf
