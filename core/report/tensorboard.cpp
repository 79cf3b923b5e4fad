#include "core/report/tensorboard.h"

#include <array>
#include <cmath>
#include <cstring>

namespace forge::report {
namespace {

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}

/// A checksum of bytes that themselves hold checksums is masked (record_writer.cc).
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

template <class Integer>
void append_little_endian(std::string& bytes, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

template <class Bits, class Real>
void append_real(std::string& bytes, Real value) {
  static_assert(sizeof(Bits) == sizeof(Real));
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  append_little_endian(bytes, bits);
}

/// Fields of a protobuf message (https://protobuf.dev/programming-guides/encoding).
class Message {
 public:
  void add_double(int field, double value) {
    add_tag(field, 1);
    append_real<uint64_t>(bytes_, value);
  }
  void add_float(int field, float value) {
    add_tag(field, 5);
    append_real<uint32_t>(bytes_, value);
  }
  void add_integer(int field, int64_t value) {
    add_tag(field, 0);
    add_varint(static_cast<uint64_t>(value));
  }
  void add_bytes(int field, std::string_view bytes) {
    add_tag(field, 2);
    add_varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_tag(int field, int wire_type) {
    add_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// The first record of every event file.
std::string version_event(double time) {
  Message event;
  event.add_double(1, time);  // wall_time
  event.add_bytes(3, "brain.Event:2");
  return event.bytes();
}

std::string scalar_event(const Metric& metric) {
  Message value;
  value.add_bytes(1, metric.name);
  value.add_float(2, static_cast<float>(metric.value));  // simple_value
  Message summary;
  summary.add_bytes(1, value.bytes());
  Message event;
  event.add_double(1, metric.time);
  event.add_integer(2, metric.step);
  event.add_bytes(5, summary.bytes());
  return event.bytes();
}

double first_time(const RunMetrics& run) {
  return run.metrics.empty() ? 0 : run.metrics.front().time;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string tensorboard_record(std::string_view bytes) {
  std::string record;
  append_little_endian(record, static_cast<uint64_t>(bytes.size()));
  append_little_endian(record, masked(crc32c(record)));
  record += bytes;
  append_little_endian(record, masked(crc32c(bytes)));
  return record;
}

std::string to_tensorboard(const RunMetrics& run) {
  std::string file = tensorboard_record(version_event(first_time(run)));
  for (const Metric& metric : run.metrics) file += tensorboard_record(scalar_event(metric));
  return file;
}

std::string tensorboard_file_name(const RunMetrics& run) {
  return "events.out.tfevents." + std::to_string(std::llround(std::floor(first_time(run)))) +
         ".forge";
}

}  // namespace forge::report
