#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace forge::huggingface {

/// A value as it may stand in a message: no deep tree is walked and no screen filled.
std::string shown(const nlohmann::json& value);

/// A key under which something else is computed unless it has one of a few values.
struct Refusal {
  const char* key;
  std::vector<nlohmann::json> harmless;  ///< besides null
  const char* reason;
};

/// The keys of a config.json. Each accessor checks the value's type and remembers the key; a
/// missing key is null. Throws Error naming the key.
class ConfigKeys {
 public:
  /// `json` is an object and outlives this.
  explicit ConfigKeys(const nlohmann::json& json) : json_(json) {}
  explicit ConfigKeys(nlohmann::json&& json) = delete;

  const nlohmann::json& value(const char* key);
  /// A size from 1 on. Required unless there is a default.
  int size(const char* key, std::optional<int> otherwise = std::nullopt);
  /// A number above 0.
  double number(const char* key, double otherwise);
  bool flag(const char* key);
  /// "" where it is missing.
  std::string text(const char* key);

  /// Throws Error with the reason at a key under whose value another program computes something
  /// that forge does not.
  void refuse(const std::vector<Refusal>& refusals);
  /// Those of transformers' Llama and its relatives.
  void refuse_what_changes_the_function();

  /// Keys that were not read, except those without effect.
  std::vector<std::string> unknown() const;

 private:
  void require(bool is_right, const char* key, const char* wanted);

  const nlohmann::json& json_;
  std::set<std::string> used_;
};

}  // namespace forge::huggingface
