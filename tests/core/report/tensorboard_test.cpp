#include "core/report/tensorboard.h"

#include <cmath>
#include <cstring>

#include "tests/support/catch.h"

namespace forge::report {
namespace {

template <class Value>
Value read_as(std::string_view bytes, size_t at) {
  REQUIRE(at + sizeof(Value) <= bytes.size());
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t unmasked(uint32_t crc) {
  const uint32_t turned = crc - 0xa282ead8;
  return (turned >> 17) | (turned << 15);
}

/// What records hold, with their checksums checked.
std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const auto length = read_as<uint64_t>(file, 0);
    REQUIRE(unmasked(read_as<uint32_t>(file, 8)) == crc32c(file.substr(0, 8)));
    REQUIRE(length + 16 <= file.size());
    const std::string_view bytes = file.substr(12, length);
    REQUIRE(unmasked(read_as<uint32_t>(file, 12 + length)) == crc32c(bytes));
    records.emplace_back(bytes);
    file.remove_prefix(length + 16);
  }
  return records;
}

/// A field of a protobuf message: its bytes, or those of its number.
struct Field {
  int number = 0;
  std::string bytes;
};

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE_FALSE(bytes.empty());
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const uint64_t tag = take_varint(bytes);
    size_t size = 8;
    if ((tag & 7) == 5) size = 4;
    if ((tag & 7) == 2) size = take_varint(bytes);
    if ((tag & 7) == 0) {
      const uint64_t value = take_varint(bytes);
      fields.push_back({static_cast<int>(tag >> 3), std::string(8, '\0')});
      std::memcpy(fields.back().bytes.data(), &value, 8);
      continue;
    }
    fields.push_back({static_cast<int>(tag >> 3), std::string(bytes.substr(0, size))});
    bytes.remove_prefix(size);
  }
  return fields;
}

TEST_CASE("CRC-32C of known bytes", "[tensorboard]") {
  // RFC 3720, B.4.
  REQUIRE(crc32c("123456789") == 0xe3069283);
  REQUIRE(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  REQUIRE(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  REQUIRE(crc32c("") == 0);
}

TEST_CASE("an event file begins as TensorFlow's do", "[tensorboard]") {
  // Length 24 with its checksum, then wall_time, then file_version: the same in every event file.
  RunMetrics run;
  run.metrics = {{"x", 1, 1, 1, 1700000000.5, 1}};
  const std::string file = to_tensorboard(run);
  REQUIRE(file.substr(0, 12) == std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"", 12));
  REQUIRE(file.substr(12, 1) == "\x09");
  REQUIRE(read_as<double>(file, 13) == 1700000000.5);
  REQUIRE(file.substr(21, 15) ==
          "\x1a\x0d"
          "brain.Event:2");
}

TEST_CASE("what is written is read back", "[tensorboard]") {
  RunMetrics run;
  run.metrics = {{"train_loss", 10, 320, 2, 1700000001.25, 3.5},
                 {"answer_accuracy.hop_8", 3000000000, 320, 2, 1700000002, 0.1},
                 {"eval_loss", 0, 0, 2, 1700000003, std::nan("")}};
  const std::vector<std::string> records = records_of(to_tensorboard(run));
  REQUIRE(records.size() == 4);
  for (size_t i = 0; i < run.metrics.size(); ++i) {
    const std::vector<Field> event = fields_of(records[i + 1]);
    REQUIRE(event.size() == 3);
    REQUIRE(event[0].number == 1);
    REQUIRE(read_as<double>(event[0].bytes, 0) == run.metrics[i].time);
    REQUIRE(event[1].number == 2);
    REQUIRE(read_as<int64_t>(event[1].bytes, 0) == run.metrics[i].step);
    REQUIRE(event[2].number == 5);
    const std::vector<Field> summary = fields_of(event[2].bytes);
    REQUIRE(summary.size() == 1);
    REQUIRE(summary[0].number == 1);
    const std::vector<Field> value = fields_of(summary[0].bytes);
    REQUIRE(value.size() == 2);
    REQUIRE(value[0].number == 1);
    REQUIRE(value[0].bytes == run.metrics[i].name);
    REQUIRE(value[1].number == 2);
    const auto number = read_as<float>(value[1].bytes, 0);
    if (std::isnan(run.metrics[i].value)) {
      REQUIRE(std::isnan(number));
    } else {
      REQUIRE(number == static_cast<float>(run.metrics[i].value));
    }
  }
}

TEST_CASE("the same run has the same bytes and name", "[tensorboard]") {
  RunMetrics run;
  run.metrics = {{"x", 1, 1, 1, 1700000000.75, 1}};
  REQUIRE(to_tensorboard(run) == to_tensorboard(run));
  REQUIRE(tensorboard_file_name(run) == "events.out.tfevents.1700000000.forge");
}

}  // namespace
}  // namespace forge::report
