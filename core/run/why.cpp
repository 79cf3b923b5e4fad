#include "core/run/why.h"

#include <algorithm>
#include <map>

#include "core/base/json_text.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

const std::map<std::string, std::string>& meanings() {
  static const std::map<std::string, std::string> all = {
      {"data_fingerprint", "the texts, or how they were cut into rows"},
      {"tokenizer_fingerprint", "the tokenizer's entries"},
      {"backend", "the program that trains"},
      {"device_type", "the kind of device"},
      {"threads", "CPU threads, which the order of sums depends on"},
      {"numerics_version", "the backend's arithmetic, which a newer version changed"},
      {"initial_weights", "the weights that it begins from"}};
  return all;
}

/// Leaves by their dotted keys.
std::map<std::string, std::string> leaves_of(const Json& json) {
  std::map<std::string, std::string> leaves;
  if (json.empty()) return leaves;
  const Json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    leaves[key] = json_text(value);
  }
  return leaves;
}

void compare(const std::map<std::string, std::string>& left,
             const std::map<std::string, std::string>& right,
             std::vector<IdentityDifference>& out) {
  std::map<std::string, std::string> keys = left;
  keys.insert(right.begin(), right.end());
  for (const auto& [key, ignored] : keys) {
    const auto a = left.find(key), b = right.find(key);
    const std::string of_left = a == left.end() ? "" : a->second;
    const std::string of_right = b == right.end() ? "" : b->second;
    if (of_left == of_right) continue;
    const auto meaning = meanings().find(key);
    out.push_back({key, of_left, of_right, meaning == meanings().end() ? "" : meaning->second});
  }
}

}  // namespace

std::vector<IdentityDifference> differences(const Identity& left, const Identity& right) {
  std::vector<IdentityDifference> out;
  compare(leaves_of(left.experiment), leaves_of(right.experiment), out);
  Json parts[] = {to_json(left), to_json(right)};
  for (Json& part : parts) part.erase("experiment");
  compare(leaves_of(parts[0]), leaves_of(parts[1]), out);
  return out;
}

}  // namespace forge::run
