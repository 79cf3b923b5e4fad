// Tokens a second that a loader delivers for each kind of rows, and what a trainer waits for it, as
// one JSON line each.

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <thread>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"

namespace forge::data {
namespace {

constexpr int64_t tokens = int64_t{32} << 20;
constexpr int document_tokens = 400;
constexpr int seq_len = 512;
constexpr int batch_size = 32;
constexpr double measured_seconds = 2;
constexpr int step_milliseconds = 5;  // a fast trainer: 3 million tokens a second

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

RowOptions shuffled_rows() {
  RowOptions rows;
  rows.seq_len = seq_len;
  rows.order = config::RowOrder::shuffled;
  rows.seed = 1;
  return rows;
}

void print(const std::string& name, double value, const char* unit) {
  std::cout << "{\"name\":\"data." << name << "\",\"value\":" << value << ",\"unit\":\"" << unit
            << "\"}\n";
}

void measure_speed(const std::string& name, const Dataset& dataset) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.threads = 2;
  BatchLoader loader(dataset, options);
  for (int i = 0; i < 100; ++i) loader.next();  // the file is in memory, the threads are awake
  const double began = steady_seconds();
  int64_t delivered = 0;
  while (steady_seconds() - began < measured_seconds) {
    loader.next();
    delivered += int64_t{batch_size} * seq_len;
  }
  const double speed = static_cast<double>(delivered) / (steady_seconds() - began);
  print("load_" + name, std::floor(speed), "tokens/s");
}

/// How much longer a trainer's steps are for what it waits for rows, with one thread that loads.
void measure_wait(const Dataset& dataset) {
  LoaderOptions options;
  options.batch_size = batch_size;
  BatchLoader loader(dataset, options);
  double waited = 0, worked = 0;
  while (worked < measured_seconds) {
    const double asked = steady_seconds();
    loader.next();
    const double got = steady_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(step_milliseconds));
    worked += steady_seconds() - got;
    waited += got - asked;
  }
  print("wait_of_steps", 100 * waited / worked, "%");
}

}  // namespace
}  // namespace forge::data

int main() {
  const auto path = std::filesystem::temp_directory_path() /
                    ("forge-bench-" + std::to_string(::getpid()) + ".tokens");
  forge::data::write_tokens(path);
  {
    using namespace forge::data;
    RowOptions rows = shuffled_rows();
    const Dataset packed(path, rows);
    measure_speed("packed", packed);
    measure_wait(packed);
    measure_speed("mixed",
                  Dataset({{path, 0, "a", 3}, {path, 0, "b", 2}, {path, 0, "c", 1}}, rows));
    RowOptions divided = rows;
    divided.document_start = 0;
    measure_speed("packed_divided", Dataset(path, divided));
    rows.pad_id = 1;
    measure_speed("padded", Dataset(path, rows));
  }
  std::filesystem::remove(path);
}
