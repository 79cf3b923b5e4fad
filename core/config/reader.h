#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/fields.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// A mistake in a config that does not hide the others.
struct Problem {
  enum class Kind {
    unknown_key,
    wrong_value,   ///< of a wrong type, or out of its limits
    missing_key,   ///< one that the schema asks for
    disagreement,  ///< keys that do not go together
    missing_file,  ///< that a key names
    unsupported,   ///< known by name alone: forge has nothing that could do it
  };
  Kind kind;
  Error error;

  /// Whether the config can be looked at all the same: what is missing is missing on this machine.
  bool only_hinders_running() const {
    return kind == Kind::missing_file || kind == Kind::unsupported;
  }
};

/// Receives each mistake; reading continues. Without a sink the first mistake is thrown.
using ProblemSink = std::function<void(const Problem&)>;

/// Runs `action`; what it throws goes to the sink, where there is one. Returns whether it
/// succeeded.
template <class Action>
bool attempt(const ProblemSink& sink, Problem::Kind kind, Action action) {
  if (!sink) {
    action();
    return true;
  }
  try {
    action();
    return true;
  } catch (const Error& error) {
    sink({kind, error});
    return false;
  }
}

// Strict reading of YAML into any struct that has a schema, a function `fields(visitor, struct)`
// found beside the struct: configs and table files alike. A key that the schema does not know, a
// wrong type and a value out of its limits are Errors at their place.

struct ReadOptions {
  std::string path;            ///< of the node within its document, for messages: "" or "train"
  bool partial = false;        ///< a required key may be missing: another layer gives it
  bool plain_is_text = false;  ///< text may be any unquoted scalar, as a shell hands it over
  const std::vector<std::string>* elsewhere = nullptr;  ///< dotted keys to suggest besides siblings
  /// Called for every leaf that was read, with its dotted path.
  std::function<void(const std::string& path, const yaml::Entry& entry)> on_leaf;
  ProblemSink on_problem;
};

/// Reads the mapping `node` over what `value` holds: a key that is missing keeps its value.
template <class T>
void read_into(const yaml::Node& node, T& value, const ReadOptions& options = {});

/// Reads the mapping `node`; a missing key keeps the struct's default.
template <class T>
T read_fields(const yaml::Node& node, const ReadOptions& options = {}) {
  T value;
  read_into(node, value, options);
  return value;
}

/// An element of model.layers with settings: core/config/layer_settings.h.
model::LayerSpec read_layer(const yaml::Node& node,
                            const std::string& path,
                            const ReadOptions& options);

namespace detail {

std::string below(const std::string& path, const std::string& key);
[[noreturn]] void fail_type(const yaml::Node& node, const std::string& path, const char* wanted);
void refuse_tag(const yaml::Node& node, const std::string& path);
/// A name that somebody chose for a section, which becomes part of dotted paths.
void check_name(const yaml::Entry& named, const std::string& path);
void check_limits(double number, const yaml::Node& node, const std::string& path, Limits limits);
bool to_boolean(const yaml::Node& node, const std::string& path);
double to_real(const yaml::Node& node, const std::string& path);
/// An integer in [low, high]; a number such as 1e6 counts where it is one.
int64_t to_integer(const yaml::Node& node, const std::string& path, int64_t low, int64_t high);
std::string to_text(const yaml::Node& node, const std::string& path, bool plain_is_text);
/// A word that is no kind of forge's is a block's name, which is checked with the whole model.
model::MlpChoice to_mlp_choice(const yaml::Node& node, const std::string& path, bool plain_is_text);
schema::CountOrAuto to_count(const yaml::Node& node, const std::string& path, Limits limits);
/// A scalar of any type, or a list of such.
schema::JsonText to_json_text(const yaml::Node& node, const std::string& path);
size_t to_choice(const yaml::Node& node,
                 const std::string& path,
                 const std::vector<std::string>& names,
                 bool plain_is_text);

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<std::vector<T>> : std::true_type {};
template <class T>
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};

/// Finds the keys of one mapping and, at the end, those that nobody asked for.
class MappingReader {
 public:
  MappingReader(const yaml::Node& mapping, const ReadOptions& options, std::string path);

  template <class T>
  void field(const char* key, T& value, const char*, Limits limits = {}) {
    const yaml::Entry* entry = take(key, limits.required);
    if (!entry) return;
    const std::string path = below(path_, key);
    attempt(options_.on_problem, Problem::Kind::wrong_value, [&] {
      read_value(*entry->value, path, value, limits);
      if (options_.on_leaf) options_.on_leaf(path, *entry);
    });
  }

  template <class T>
  void section(const char* key, T& value, const char*, Limits = {}) {
    if (const yaml::Entry* entry = take(key, false)) {
      attempt(options_.on_problem, Problem::Kind::wrong_value, [&] {
        read_struct(*entry->value, below(path_, key), value);
      });
    }
  }

  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    const yaml::Entry* entry = take(key, false);
    if (!entry) return;
    const std::string path = below(path_, key);
    attempt(options_.on_problem, Problem::Kind::wrong_value, [&] {
      refuse_tag(*entry->value, path);
      if (!entry->value->is_mapping()) fail_type(*entry->value, path, "a mapping of names");
      for (const yaml::Entry& named : entry->value->entries) {
        check_name(named, path);
        attempt(options_.on_problem, Problem::Kind::wrong_value, [&] {
          read_struct(*named.value, below(path, named.key), values[named.key]);
        });
      }
    });
  }

  void rest(std::map<std::string, schema::JsonText>& values, const char*) {
    for (const yaml::Entry& entry : mapping_.entries) {
      if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
      known_.push_back(entry.key);
      const std::string path = below(path_, entry.key);
      attempt(options_.on_problem, Problem::Kind::wrong_value, [&] {
        check_name(entry, path_);
        values[entry.key] = to_json_text(*entry.value, path);
        if (options_.on_leaf) options_.on_leaf(path, entry);
      });
    }
  }

  /// Throws Error at the first key that the schema does not have.
  void finish() const;

 private:
  const yaml::Entry* take(const char* key, bool required);

  template <class T>
  void read_struct(const yaml::Node& node, const std::string& path, T& value) {
    MappingReader inner(node, options_, path);
    fields(inner, value);
    inner.finish();
  }

  template <class T>
  void read_value(const yaml::Node& node, const std::string& path, T& value, Limits limits) {
    refuse_tag(node, path);
    if constexpr (is_optional<T>::value) {
      if (node.is_null()) {
        value.reset();
      } else {
        read_value(node, path, value.emplace(), limits);
      }
    } else if (limits.nullable && node.is_null()) {
      value = T{};
    } else if constexpr (std::is_same_v<T, model::MlpChoice>) {
      value = to_mlp_choice(node, path, options_.plain_is_text);
    } else if constexpr (std::is_same_v<T, schema::CountOrAuto>) {
      value = to_count(node, path, limits);
    } else if constexpr (std::is_same_v<T, schema::JsonText>) {
      value = to_json_text(node, path);
    } else if constexpr (std::is_same_v<T, model::LayerSpec>) {
      value = node.is_mapping() ? read_layer(node, path, options_)
                                : T(to_text(node, path, options_.plain_is_text));
    } else if constexpr (is_list<T>::value) {
      if (!node.is_sequence()) fail_type(node, path, "a list");
      value.clear();
      for (size_t i = 0; i < node.items.size(); ++i) {
        typename T::value_type item{};
        read_value(*node.items[i], path + "[" + std::to_string(i) + "]", item, limits);
        value.push_back(std::move(item));
      }
    } else if constexpr (is_map<T>::value) {
      if (!node.is_mapping()) fail_type(node, path, "a mapping");
      value.clear();
      for (const yaml::Entry& entry : node.entries) {
        read_value(*entry.value, below(path, entry.key), value[entry.key], limits);
      }
    } else {
      read_scalar(node, path, value, limits);
    }
  }

  template <class T>
  void read_scalar(const yaml::Node& node, const std::string& path, T& value, Limits limits) {
    if constexpr (std::is_same_v<T, bool>) {
      value = to_boolean(node, path);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(to_choice(node, path, names_of(value), options_.plain_is_text));
    } else if constexpr (std::is_integral_v<T>) {
      // An integer of a config is written into JSON and read from there.
      constexpr bool is_wide = sizeof(T) == sizeof(int64_t);
      constexpr int64_t high =
          is_wide ? largest_exact_integer : static_cast<int64_t>(std::numeric_limits<T>::max());
      constexpr int64_t low = std::is_unsigned_v<T> ? 0
                              : is_wide             ? -largest_exact_integer
                                        : static_cast<int64_t>(std::numeric_limits<T>::min());
      value = static_cast<T>(to_integer(node, path, low, high));
      check_limits(static_cast<double>(value), node, path, limits);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(to_real(node, path));
      check_limits(value, node, path, limits);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = to_text(node, path, options_.plain_is_text);
    } else {
      read_struct(node, path, value);
    }
  }

  const yaml::Node& mapping_;
  const ReadOptions& options_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace detail

template <class T>
void read_into(const yaml::Node& node, T& value, const ReadOptions& options) {
  detail::MappingReader reader(node, options, options.path);
  fields(reader, value);
  reader.finish();
}

}  // namespace forge::config
