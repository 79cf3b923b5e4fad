#include "core/lingua/import_recipe.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::lingua {
namespace {

/// Text as YAML in double quotes, with what begins a statement or a comment of a template spelt as
/// an escape.
std::string yaml_text(const std::string& text) {
  const std::string json = json_text(nlohmann::json(text));
  std::string quoted;
  for (const char c : json) quoted += c == '{' ? "\\x7B" : c == '#' ? "\\x23" : std::string(1, c);
  return quoted;
}

/// A comment is read by the template engine too: on one line, nothing in it begins a statement.
std::string escape_comment(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool joins = ends_with(line, "{") || ends_with(line, "#");
    if (joins && (c == '{' || c == '%' || c == '#')) line += ' ';
    line += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  }
  return line;
}

std::string yaml_text(bool value) { return value ? "true" : "false"; }
std::string yaml_text(double value) { return shortest(value); }
std::string yaml_text(const model::LayerSpec& layer) { return yaml_text(layer.mixer); }

std::string yaml_text(const model::MlpChoice& value) { return config::name_of(value.kind); }
std::string yaml_text(const schema::CountOrAuto& value) { return value.text(); }
std::string yaml_text(const schema::JsonText& value) { return value.text; }

template <class T>
std::string yaml_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return config::name_of(value);
  } else {
    return std::to_string(value);
  }
}
template <class T>
std::string yaml_text(const std::optional<T>& value) {
  return value ? yaml_text(*value) : "null";
}
template <class T>
std::string yaml_text(const std::vector<T>& values) {
  const auto texts = texts_of(values, [](const T& value) { return yaml_text(value); });
  return "[" + join(texts, ", ") + "]";
}

/// Writes the keys that have a comment, which may be "", with the sections around them.
class Writer {
 public:
  Writer(const std::map<std::string, std::string>& key_comments, std::string path, int depth)
      : key_comments_(key_comments), path_(std::move(path)), depth_(depth) {}

  template <class T>
  void field(const char* key, T& value, const char*, config::Limits = {}) {
    const auto found = key_comments_.find(path_ + key);
    if (found == key_comments_.end()) return;
    text_ += std::string(2 * depth_, ' ') + key + ": " + yaml_text(value);
    if (!found->second.empty()) text_ += "  # " + escape_comment(found->second);
    text_ += "\n";
  }

  template <class T>
  void section(const char* key, T& value, const char*, config::Limits = {}) {
    Writer inner(key_comments_, path_ + key + ".", depth_ + 1);
    fields(inner, value);
    if (inner.text_.empty()) return;
    if (depth_ == 0) text_ += "\n";
    text_ += std::string(2 * depth_, ' ') + key + ":\n" + inner.text_;
  }

  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    Writer all(key_comments_, path_ + key + ".", depth_ + 1);
    for (auto& [name, value] : values) all.section(name.c_str(), value, "");
    if (!all.text_.empty()) text_ += std::string(2 * depth_, ' ') + key + ":\n" + all.text_;
  }

  /// A recipe has no blocks of one's own.
  void rest(std::map<std::string, schema::JsonText>&, const char*) {}

  const std::string& text() const { return text_; }

 private:
  const std::map<std::string, std::string>& key_comments_;
  std::string path_;
  int depth_;
  std::string text_;
};

std::string comments(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n# " + title + "\n";
  for (const std::string& line : lines) text += "#   " + escape_comment(line) + "\n";
  return text;
}

/// The lines of name and description, which a leaf has in a block of their own, and the others.
struct Lines {
  std::string metadata, body;
};

Lines write_keys(const ImportedRecipe& imported) {
  std::map<std::string, std::string> metadata, body;
  for (const auto& key_comments : imported.key_comments) {
    const bool names = key_comments.first == "name" || key_comments.first == "description";
    (names ? metadata : body).insert(key_comments);
  }
  const auto written = [&](const std::map<std::string, std::string>& key_comments) {
    config::Experiment experiment = imported.experiment;
    Writer writer(key_comments, "", 0);
    fields(writer, experiment);
    return writer.text();
  };
  return {written(metadata), written(body)};
}

}  // namespace

std::string write_config(const ImportedRecipe& imported, ConfigForm form) {
  const bool leaf = form == ConfigForm::leaf;
  const Lines lines = write_keys(imported);
  std::string text = std::string(leaf ? "##" : "#") + " Imported by forge import-lingua";
  if (!imported.file_name.empty()) text += " from " + escape_comment(imported.file_name);
  text += ". A remark names lingua's key, or how the value follows.\n";
  if (leaf) text += "-- extends 'base/config.yaml'\n\n[metadata]\n";
  text += lines.metadata + (leaf ? "\n[body]\n" : "") + lines.body;

  std::vector<std::string> unsupported, unknown;
  for (const UnsupportedKey& key : imported.unsupported) {
    unsupported.push_back(key.path + ": " + key.value + " (" + key.reason + ")");
  }
  for (const Error& error : imported.unknown) unknown.push_back(error.message());
  text += comments("Different from the recipe, or assumed:", imported.notes);
  text += comments("Without a counterpart in forge:", unsupported);
  text += comments("Not known to forge, and left out:", unknown);
  return text;
}

}  // namespace forge::lingua
