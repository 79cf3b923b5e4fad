#include "core/weights/manifest.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/json_text.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int manifest_version = 1;
constexpr uintmax_t largest_manifest = 64'000'000;

Json file_entry(const fs::path& path, const OnBytes& on_bytes) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw system_error("read '" + path.string() + "'", error.value());
  return {{"bytes", bytes}, {"hash", hash_file(path, on_bytes)}};
}

/// The one way of writing a manifest, so that a reader can ask for exactly these bytes.
std::string text_of(const Json& manifest) {
  const Json whole = {{"manifest", manifest}, {"hash", hash_hex(json_text(manifest))}};
  return json_text(whole, 2) + "\n";
}

std::string bounded_text(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw Error(std::string(manifest_file) + " cannot be read: " + error.message());
  if (bytes > largest_manifest) throw Error(std::string(manifest_file) + " is impossibly large");
  return read_file(path);
}

/// The inner object of a manifest whose every byte is as forge wrote it.
Json checked_object(const std::string& text) {
  const Json whole = try_parse_json(text);
  const auto manifest = whole.is_object() ? whole.find("manifest") : whole.end();
  if (manifest == whole.end() || text_of(*manifest) != text) {
    throw Error(std::string(manifest_file) + " is not what was written");
  }
  return *manifest;
}

void check_version(const Json& manifest) {
  const int version = manifest.value("version", 0);
  if (version == manifest_version) return;
  throw Error(std::string(manifest_file) + " has version " + std::to_string(version) +
                  " and this program reads version " + std::to_string(manifest_version),
              {},
              "it was written by another version of forge");
}

/// A name must not lead out of the folder.
void check_name(const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string("/\0", 2)) == std::string::npos;
  if (!plain) throw Error(std::string(manifest_file) + " lists '" + name + "', which is no file");
}

void check_file(const fs::path& path, const Json& entry, Content content) {
  const std::string name = path.filename().string();
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw Error(name + " cannot be read: " + error.message());
  const auto expected = entry.at("bytes").get<uintmax_t>();
  if (bytes != expected) {
    throw Error(name + " has " + std::to_string(bytes) + " bytes instead of " +
                std::to_string(expected));
  }
  if (content == Content::checked && hash_file(path) != entry.at("hash").get<std::string>()) {
    throw Error("the content of " + name + " is not what was written");
  }
}

}  // namespace

std::string manifest_text(const CheckpointState& state,
                          const fs::path& folder,
                          const std::vector<std::string>& files,
                          const OnBytes& on_bytes) {
  Json entries = Json::object();
  for (const std::string& file : files) entries[file] = file_entry(folder / file, on_bytes);
  const Json loss = state.eval_loss ? Json(*state.eval_loss) : Json(nullptr);
  const Json written_state = {{"step", state.step},
                              {"rows_served", state.rows_served},
                              {"elapsed_seconds", state.elapsed_seconds},
                              {"identity", state.identity},
                              {"eval_loss", loss},
                              {"extra", state.extra}};
  return text_of({{"version", manifest_version}, {"state", written_state}, {"files", entries}});
}

CheckpointState read_manifest(const fs::path& folder, Content content) {
  const Json manifest = checked_object(bounded_text(folder / manifest_file));
  try {
    check_version(manifest);
    for (const auto& [name, entry] : manifest.at("files").items()) {
      check_name(name);
      if (content != Content::as_it_is) check_file(folder / name, entry, content);
    }
    const Json& state = manifest.at("state");
    CheckpointState read;
    state.at("step").get_to(read.step);
    state.at("rows_served").get_to(read.rows_served);
    state.at("elapsed_seconds").get_to(read.elapsed_seconds);
    // Checkpoints of earlier versions of forge have neither.
    read.identity = state.value("identity", "");
    if (state.contains("eval_loss") && !state.at("eval_loss").is_null())
      read.eval_loss = state.at("eval_loss").get<double>();
    read.extra = state.at("extra");
    return read;
  } catch (const Json::exception& problem) {
    throw Error(std::string(manifest_file) + " lacks a part: " + problem.what());
  }
}

}  // namespace forge::weights
