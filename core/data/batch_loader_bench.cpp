// Tokens a second that a loader delivers, as one JSON line for each kind of rows.

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/data/batch_loader.h"
#include "core/data/token_file_writer.h"

namespace forge::data {
namespace {

constexpr int64_t tokens = int64_t{32} << 20;
constexpr int document_tokens = 400;
constexpr int seq_len = 512;
constexpr int batch_size = 32;
constexpr double measured_seconds = 2;

void write_tokens(const std::filesystem::path& path) {
  TokenFileWriter writer(path, 32000, hash_hex("bench"));
  std::vector<int32_t> ids(document_tokens);
  for (int64_t i = 0; i < tokens / document_tokens; ++i) {
    for (size_t j = 0; j < ids.size(); ++j) {
      ids[j] = static_cast<int32_t>((static_cast<uint64_t>(i) * 7919 + j * 31) % 32000);
    }
    writer.append(ids.data(), ids.size(), {0});
  }
  writer.finish();
}

void measure(const std::string& name,
             const std::filesystem::path& path,
             bool padded,
             bool divided) {
  RowOptions rows;
  rows.seq_len = seq_len;
  rows.order = config::RowOrder::shuffled;
  rows.seed = 1;
  if (padded) rows.pad_id = 1;
  if (divided) rows.document_start = 0;
  const Dataset dataset(path, rows);
  LoaderOptions options;
  options.batch_size = batch_size;
  options.threads = 2;
  BatchLoader loader(dataset, options);
  for (int i = 0; i < 100; ++i) loader.next();  // the file is in memory, the threads are awake
  const double began = steady_seconds();
  int64_t delivered = 0;
  int64_t sum = 0;
  while (steady_seconds() - began < measured_seconds) {
    sum += loader.next().targets[0];
    delivered += int64_t{batch_size} * seq_len;
  }
  const double speed = static_cast<double>(delivered) / (steady_seconds() - began);
  std::cout << "{\"name\":\"data.load_" << name << "\",\"value\":" << static_cast<int64_t>(speed)
            << ",\"unit\":\"tokens/s\",\"checked\":" << sum % 10 << "}\n";
}

}  // namespace
}  // namespace forge::data

int main() {
  const auto path = std::filesystem::temp_directory_path() /
                    ("forge-bench-" + std::to_string(::getpid()) + ".tokens");
  forge::data::write_tokens(path);
  forge::data::measure("packed", path, false, false);
  forge::data::measure("packed_divided", path, false, true);
  forge::data::measure("padded", path, true, false);
  std::filesystem::remove(path);
}
