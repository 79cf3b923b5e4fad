#include "core/model/weights/safetensors.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/model/weights/dtype.h"

// Layout: 8 bytes length of the header, little endian; the header, a JSON object
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//    "__metadata__": {"key": "text", …}}
// perhaps padded with spaces; the data, which the offsets cover without a gap.
namespace forge::weights {
namespace {

using Json = nlohmann::json;

constexpr size_t length_bytes = 8;
// The format's own readers stop at 100 MB, which takes seconds to read. 61 layers of 384 experts
// with three matrices each are 70,000 tensors, of some 150 bytes here.
constexpr uint64_t largest_header = 50'000'000;
constexpr size_t most_tensors = 250'000;

/// One tensor's entry in the header, checked in itself.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// A name from the file as it may stand in a message: a terminal obeys control characters.
std::string quoted(const std::string& name) {
  constexpr size_t longest = 200;
  const std::string text = json_text(Json(name)).substr(1, longest + 1);
  return "'" +
         (text.size() > longest ? text.substr(0, longest) + "…" : text.substr(0, text.size() - 1)) +
         "'";
}

std::string_view header_text(const std::byte* bytes, size_t size) {
  if (size < length_bytes) throw Error("it is shorter than the length of its header");
  uint64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  if (length > largest_header) {
    throw Error("it claims a header of " + std::to_string(length) + " bytes; at most " +
                std::to_string(largest_header) + " are allowed");
  }
  if (length > size - length_bytes) throw Error("it ends within its header");
  const std::string_view text(reinterpret_cast<const char*>(bytes) + length_bytes,
                              static_cast<size_t>(length));
  if (text.empty() || text[0] != '{') throw Error("it has a header that does not begin with '{'");
  return text;
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
  const std::string tensor = "tensor " + quoted(name);
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) throw Error(tensor + " has no " + key);
  }

  Entry entry;
  entry.name = name;
  if (!json["dtype"].is_string()) throw Error(tensor + " has a dtype that is no text");
  const auto& dtype = json["dtype"].get_ref<const std::string&>();
  const auto known = dtype_of(dtype);
  if (!known)
    throw Error(tensor + " has the dtype " + quoted(dtype) + ", which forge does not read");
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
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      throw Error("it has a __metadata__ " + quoted(key) + " that is no text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Takes a header apart while it is parsed: an entry is checked and dropped from the parser's tree
/// at its end, so that a header costs little more memory than its text.
class HeaderReader {
 public:
  void read(std::string_view text) {
    try {
      const Json emptied =
          Json::parse(text, [this](int depth, Json::parse_event_t event, Json& parsed) {
            return on_event(depth, event, parsed);
          });
    } catch (const Json::parse_error& error) {
      const bool encoding = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
      throw Error("it has a header that is not JSON: byte " + std::to_string(error.byte) +
                  (encoding ? " is not UTF-8" : " is out of place"));
    } catch (const Json::exception&) {
      throw Error("it has a header that is not JSON");
    }
  }

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

 private:
  // Depth 1 is within the header's object, 2 within an entry, 3 within a list of an entry.
  static constexpr int deepest = 3;
  static constexpr size_t most_numbers = 64;
  static constexpr size_t most_metadata = 65536;

  bool on_event(int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        begin(depth, event == Json::parse_event_t::object_start);
        return true;
      case Json::parse_event_t::key:
        take_name(depth, parsed.get_ref<const std::string&>());
        return true;
      case Json::parse_event_t::value:
        if (depth == 1) refuse_description();
        if (depth == 3 && ++numbers_ > most_numbers) {
          throw Error(described_ + " has a list of more than " + std::to_string(most_numbers) +
                      " numbers");
        }
        return true;
      case Json::parse_event_t::object_end:
        if (depth == 1) finish_description(parsed);
        return depth != 1;
      case Json::parse_event_t::array_end: return true;
    }
    return true;
  }

  void begin(int depth, bool object) {
    if (depth >= deepest) throw Error("it has a header that is nested too deeply");
    if (depth == 1 && !object) refuse_description();
    names_[static_cast<size_t>(depth) + 1].clear();
    numbers_ = 0;
  }

  void take_name(int depth, const std::string& name) {
    std::set<std::string>& names = names_[static_cast<size_t>(depth)];
    if (!names.insert(name).second)
      throw Error("it names " + quoted(name) + " twice in its header");
    if (depth == 1) {
      name_ = name;
      is_metadata_ = name == "__metadata__";
      described_ = is_metadata_ ? name : "tensor " + quoted(name);
    } else if (depth == 2 && is_metadata_ && names.size() > most_metadata) {
      throw Error("it has a __metadata__ of more than " + std::to_string(most_metadata) + " keys");
    } else if (depth == 2 && !is_metadata_ && name != "dtype" && name != "shape" &&
               name != "data_offsets") {
      throw Error(described_ + " has more than dtype, shape and data_offsets: " + quoted(name));
    }
  }

  [[noreturn]] void refuse_description() const {
    if (is_metadata_) throw Error("it has a __metadata__ that is no object");
    throw Error(described_ + " is not described by an object");
  }

  void finish_description(const Json& parsed) {
    if (is_metadata_) {
      metadata = metadata_of(parsed);
    } else {
      if (entries.size() == most_tensors)
        throw Error("it has more than " + std::to_string(most_tensors) + " tensors");
      entries.push_back(entry_of(name_, parsed));
    }
  }

  std::array<std::set<std::string>, deepest + 2> names_;  ///< seen so far, by depth
  std::string name_;                                      ///< of the entry being read
  std::string described_;                                 ///< it, for a message
  bool is_metadata_ = false;
  size_t numbers_ = 0;  ///< in the list being read
};

/// The entries must cover the data from its first byte to its last, each byte once. Sorts them.
void check_coverage(std::vector<Entry>& entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    const std::string tensor = "tensor " + quoted(entry.name);
    if (entry.begin < covered) throw Error(tensor + " overlaps another one");
    if (entry.begin > covered) throw Error("it has a gap before " + tensor);
    if (entry.end > data_bytes) {
      throw Error("it ends within " + tensor + ": it was cut short, or its header is wrong");
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw Error("it has " + std::to_string(data_bytes - covered) +
                " bytes that belong to no tensor");
  }
}

}  // namespace

SafetensorsContents read_safetensors(const std::byte* bytes, size_t size) {
  const std::string_view text = header_text(bytes, size);
  const std::byte* data = bytes + length_bytes + text.size();
  HeaderReader header;
  header.read(text);
  check_coverage(header.entries, size - length_bytes - text.size());
  SafetensorsContents contents;
  contents.metadata = std::move(header.metadata);
  for (Entry& entry : header.entries) {
    contents.tensors[std::move(entry.name)] = {entry.dtype,
                                               std::move(entry.shape),
                                               data + entry.begin,
                                               static_cast<size_t>(entry.end - entry.begin)};
  }
  return contents;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  try {
    contents_ = read_safetensors(file_.data(), file_.size());
  } catch (const Error& error) {
    throw Error("'" + shown_path(path) + "' is not a sound safetensors file: " + error.message(),
                ExitCode::failed);
  }
}

const TensorView& SafetensorsFile::tensor(const std::string& name) const {
  const auto found = contents_.tensors.find(name);
  if (found != contents_.tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, view] : contents_.tensors) names.push_back(known);
  throw Error("'" + shown_path(path_) + "' has no tensor '" + name + "'",
              did_you_mean(name, names),
              ExitCode::failed);
}

namespace {

constexpr size_t alignment = 64;
constexpr size_t converted_at_once = size_t{1} << 16;  // values
constexpr size_t written_at_once = size_t{16} << 20;   // bytes
constexpr size_t synced_at_once = size_t{256} << 20;   // bytes

/// A tensor on its way into the file.
struct Item {
  const std::string* name;
  const TensorView* tensor;
  Dtype dtype;   ///< in the file
  size_t bytes;  ///< in the file
};

/// Wider dtypes first, so that every tensor is aligned to its own although no gap is allowed.
std::vector<Item> in_file_order(const std::map<std::string, TensorView>& tensors,
                                std::optional<Dtype> floating) {
  std::vector<Item> items;
  for (const auto& [name, tensor] : tensors) {
    const Dtype dtype = floating && is_floating(tensor.dtype) ? *floating : tensor.dtype;
    const size_t bytes = tensor.bytes / bytes_of(tensor.dtype) * bytes_of(dtype);
    items.push_back({&name, &tensor, dtype, bytes});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return bytes_of(a.dtype) > bytes_of(b.dtype);
  });
  return items;
}

void check(const std::string& name, const TensorView& tensor) {
  if (name == "__metadata__") throw Error("a tensor cannot be named '__metadata__'");
  if (bytes_of(tensor.dtype, tensor.shape) != tensor.bytes) {
    throw Error("tensor '" + name + "' has " + std::to_string(tensor.bytes) +
                " bytes, which is not what its shape and dtype give");
  }
}

/// The header with its length before it, padded with spaces so that the data is aligned.
std::string header_of(const std::vector<Item>& items,
                      const std::map<std::string, std::string>& metadata) {
  // Entry by entry, because a JSON object would sort them by name.
  std::vector<std::string> entries;
  if (!metadata.empty()) entries.push_back("\"__metadata__\":" + json_text(Json(metadata)));
  size_t offset = 0;
  for (const Item& item : items) {
    const Json entry = {{"dtype", name_of(item.dtype)},
                        {"shape", item.tensor->shape},
                        {"data_offsets", {offset, offset + item.bytes}}};
    entries.push_back(json_text(Json(*item.name)) + ":" + json_text(entry));
    offset += item.bytes;
  }
  std::string text = "{" + join(entries, ",") + "}";
  const size_t unpadded = length_bytes + text.size();
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  std::string length;
  for (size_t i = 0; i < length_bytes; ++i) {
    length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return length + text;
}

/// The file on its way.
class Output {
 public:
  /// `flags`: of open(2), besides those of writing.
  Output(std::filesystem::path path, const OnBytes& on_bytes, int flags)
      : path_(std::move(path)),
        on_bytes_(on_bytes),
        file_(open_own_file(path_, O_WRONLY | O_CREAT | flags, "write")) {}

  void go_to(size_t offset) {
    if (::lseek(file_.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
      throw system_error("write '" + path_.string() + "'", errno);
  }

  void write(const void* bytes, size_t size) {
    std::string_view rest(static_cast<const char*>(bytes), size);
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, written_at_once);
      write_all(file_.get(), piece, path_);
      rest.remove_prefix(piece.size());
      unsynced_ += piece.size();
      if (unsynced_ >= synced_at_once) sync();
      if (on_bytes_) on_bytes_(static_cast<int64_t>(piece.size()));
    }
  }

  void sync() {
    if (::fsync(file_.get()) != 0) throw system_error("sync '" + path_.string() + "'", errno);
    unsynced_ = 0;
  }

 private:
  std::filesystem::path path_;
  const OnBytes& on_bytes_;
  FileDescriptor file_;
  size_t unsynced_ = 0;
};

/// The tensor's data in the dtype of the file, of which no more than a piece is in memory at once.
void write_data(const Item& item, Output& output) {
  const TensorView& tensor = *item.tensor;
  if (item.dtype == tensor.dtype) return output.write(tensor.data, tensor.bytes);
  std::vector<std::byte> piece(converted_at_once * bytes_of(item.dtype));
  const size_t count = tensor.bytes / bytes_of(tensor.dtype);
  for (size_t first = 0; first < count; first += converted_at_once) {
    const size_t here = std::min(converted_at_once, count - first);
    try {
      convert(tensor, first, here, item.dtype, piece.data());
    } catch (const Error& error) {
      throw Error("tensor '" + *item.name + "' " + error.message(), error.hint());
    }
    output.write(piece.data(), here * bytes_of(item.dtype));
  }
}

}  // namespace

int64_t write_safetensors(const std::filesystem::path& path,
                          const std::map<std::string, TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata,
                          std::optional<Dtype> floating,
                          const OnBytes& on_bytes) {
  for (const auto& [name, tensor] : tensors) check(name, tensor);
  const std::vector<Item> items = in_file_order(tensors, floating);
  const std::string header = header_of(items, metadata);
  const std::filesystem::path aside = path.string() + ".tmp-" + process_digits();
  Output output(aside, on_bytes, O_TRUNC);
  auto total = static_cast<int64_t>(header.size());
  try {
    output.write(header.data(), header.size());
    for (const Item& item : items) {
      write_data(item, output);
      total += static_cast<int64_t>(item.bytes);
    }
    output.sync();
    if (::rename(aside.c_str(), path.c_str()) != 0) {
      throw system_error("rename '" + aside.string() + "'", errno);
    }
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  sync_path(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  return total;
}

std::map<std::string, TensorPart> whole_parts(const std::map<std::string, TensorView>& tensors) {
  std::map<std::string, TensorPart> parts;
  for (const auto& [name, tensor] : tensors)
    parts[name] = {tensor.dtype, tensor.shape, tensor.data, tensor.bytes};
  return parts;
}

int64_t write_safetensors_part(const std::filesystem::path& path,
                               const std::map<std::string, TensorPart>& tensors,
                               bool writes_header,
                               const OnBytes& on_bytes) {
  std::map<std::string, TensorView> wholes;
  for (const auto& [name, part] : tensors) {
    const size_t bytes = bytes_of(part.dtype, part.shape).value_or(0);
    const TensorView whole{part.dtype, part.shape, nullptr, bytes};
    check(name, whole);
    const size_t before = static_cast<size_t>(part.begin) * bytes_of(part.dtype);
    if (part.bytes % bytes_of(part.dtype) != 0 || before + part.bytes > whole.bytes)
      throw Error("the part of tensor '" + name + "' is not within its shape");
    wholes.emplace(name, whole);
  }
  const std::vector<Item> items = in_file_order(wholes, std::nullopt);
  const std::string header = header_of(items, {});
  Output output(path, on_bytes, 0);
  if (writes_header) output.write(header.data(), header.size());
  size_t offset = header.size();
  for (const Item& item : items) {
    const TensorPart& part = tensors.at(*item.name);
    output.go_to(offset + static_cast<size_t>(part.begin) * bytes_of(part.dtype));
    output.write(part.data, part.bytes);
    offset += item.bytes;
  }
  output.sync();
  return static_cast<int64_t>(offset);
}

}  // namespace forge::weights
