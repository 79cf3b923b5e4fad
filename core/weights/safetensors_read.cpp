#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/weights/dtype.h"
#include "core/weights/safetensors.h"

// Layout: 8 bytes length of the header, little endian; the header, a JSON object
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//    "__metadata__": {"key": "text", …}}
// perhaps padded with spaces; the data, which the offsets cover without a gap.
namespace forge::weights {
namespace {

using Json = nlohmann::json;

constexpr size_t length_bytes = 8;
constexpr uint64_t largest_header = 100'000'000;  // the limit of the format's own readers

/// One tensor's entry in the header, checked in itself.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::string_view header_text(const MappedFile& file) {
  if (file.size() < length_bytes) throw Error("is shorter than the length of its header");
  uint64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<uint64_t>(file.data()[i]) << (8 * i);
  }
  if (length > largest_header) {
    throw Error("claims a header of " + std::to_string(length) + " bytes; at most " +
                std::to_string(largest_header) + " are allowed");
  }
  if (length > file.size() - length_bytes) throw Error("ends within its header");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes,
                              static_cast<size_t>(length));
  if (text.empty() || text[0] != '{') throw Error("has a header that does not begin with '{'");
  return text;
}

/// Parses the header. A name given twice and nesting beyond that of a valid header are errors.
Json parse_header(std::string_view text) {
  constexpr int deepest = 3;
  std::vector<std::set<std::string>> names(deepest + 1);
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= deepest) throw Error("has a header that is nested too deeply");
    if (opens) names[static_cast<size_t>(depth) + 1].clear();
    if (event == Json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names[static_cast<size_t>(depth)].insert(name).second) {
        throw Error("names '" + name + "' twice in its header");
      }
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception&) {
    throw Error("has a header that is not JSON");
  }
}

uint64_t unsigned_number(const Json& json, const std::string& what) {
  if (!json.is_number_unsigned()) throw Error(what + " is not a whole number from 0 on");
  return json.get<uint64_t>();
}

std::vector<int64_t> shape_of(const Json& json, const std::string& tensor) {
  if (!json.is_array()) throw Error(tensor + " has a shape that is no list");
  std::vector<int64_t> shape;
  for (const Json& size : json) {
    const uint64_t number = unsigned_number(size, "a size in the shape of " + tensor);
    if (number > uint64_t{1} << 62) throw Error(tensor + " is impossibly large");
    shape.push_back(static_cast<int64_t>(number));
  }
  return shape;
}

Entry entry_of(const std::string& name, const Json& json) {
  const std::string tensor = "tensor '" + name + "'";
  if (!json.is_object()) throw Error(tensor + " is not described by an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) throw Error(tensor + " has no " + key);
  }
  if (json.size() != 3) throw Error(tensor + " has more than dtype, shape and data_offsets");

  Entry entry;
  entry.name = name;
  if (!json["dtype"].is_string()) throw Error(tensor + " has a dtype that is no text");
  const auto& dtype = json["dtype"].get_ref<const std::string&>();
  const auto known = dtype_of(dtype);
  if (!known) throw Error(tensor + " has the dtype '" + dtype + "', which forge does not read");
  entry.dtype = *known;
  entry.shape = shape_of(json["shape"], tensor);

  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) {
    throw Error(tensor + " has data_offsets that are not two numbers");
  }
  entry.begin = unsigned_number(offsets[0], "the first of the data_offsets of " + tensor);
  entry.end = unsigned_number(offsets[1], "the second of the data_offsets of " + tensor);
  if (entry.begin > entry.end) throw Error(tensor + " ends before it begins");

  const auto bytes = bytes_of(entry.dtype, entry.shape);
  if (!bytes) throw Error(tensor + " is impossibly large");
  if (*bytes != entry.end - entry.begin) {
    throw Error(tensor + " has " + std::to_string(entry.end - entry.begin) +
                " bytes of data where its shape asks for " + std::to_string(*bytes));
  }
  return entry;
}

std::map<std::string, std::string> metadata_of(const Json& json) {
  if (!json.is_object()) throw Error("has a __metadata__ that is no object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw Error("has a __metadata__ '" + key + "' that is no text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// The entries must cover the data from its first byte to its last, each byte once.
void check_coverage(std::vector<Entry> entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    const std::string tensor = "tensor '" + entry.name + "'";
    if (entry.begin < covered) throw Error(tensor + " overlaps another one");
    if (entry.begin > covered) throw Error("has a gap before " + tensor);
    if (entry.end > data_bytes) {
      throw Error("ends within " + tensor + ": it was cut short, or its header is wrong");
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw Error("has " + std::to_string(data_bytes - covered) + " bytes that belong to no tensor");
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  try {
    const std::string_view text = header_text(file_);
    const std::byte* data = file_.data() + length_bytes + text.size();
    const Json header = parse_header(text);
    std::vector<Entry> entries;
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = metadata_of(json);
      } else {
        entries.push_back(entry_of(name, json));
      }
    }
    check_coverage(entries, file_.size() - length_bytes - text.size());
    for (const Entry& entry : entries) {
      tensors_[entry.name] = {entry.dtype,
                              entry.shape,
                              data + entry.begin,
                              static_cast<size_t>(entry.end - entry.begin)};
    }
  } catch (const Error& error) {
    throw Error("'" + shown_path(path) + "' is not a sound safetensors file: " + error.message(),
                {},
                "",
                ExitCode::failed);
  }
}

const TensorView& SafetensorsFile::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, view] : tensors_) names.push_back(known);
  throw Error("'" + shown_path(path_) + "' has no tensor '" + name + "'",
              {},
              did_you_mean(name, names),
              ExitCode::failed);
}

}  // namespace forge::weights
