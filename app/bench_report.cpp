#include "app/bench_report.h"

#include <cmath>
#include <cstdio>

#include "app/terminal.h"
#include "core/base/text.h"
#include "core/report/figures.h"

namespace forge::app {
namespace {

using benchmark::Record;
using Lines = std::vector<std::vector<std::string>>;

std::string decimals(double number, int count) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", count, number);
  return text;
}

/// Seconds as milliseconds, with as many decimals as make three digits.
std::string milliseconds(double seconds) {
  const double value = seconds * 1000;
  return decimals(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string part(const Record& record, double benchmark::Parts::*seconds) {
  return record.parts ? milliseconds(*record.parts.*seconds) : "-";
}

std::string percent(double fraction) { return decimals(100 * fraction, 1) + " %"; }

std::string speed(double tokens_per_second) {
  return with_thousands(std::llround(tokens_per_second));
}

std::string ratio_text(const Record& record) {
  if (!record.ratio) return "";
  return decimals(record.ratio->median, 3) + " ± " +
         decimals(record.ratio->spread * record.ratio->median, 3);
}

std::string threads_text(const benchmark::Device& device) {
  if (device.type != "cpu") return "";
  return ", " + std::to_string(device.threads) + (device.threads == 1 ? " thread" : " threads");
}

std::string device_text(const benchmark::Device& device) {
  return device.name + threads_text(device);
}

/// With the head in bold.
std::string table(const Lines& lines, const std::vector<size_t>& right, bool colour) {
  const std::string text = aligned(lines, right);
  const size_t head = text.find('\n');
  return styled(text.substr(0, head), Style::bold, colour) + text.substr(head);
}

std::vector<size_t> all_but_first(size_t count) {
  std::vector<size_t> columns;
  for (size_t i = 1; i < count; ++i) columns.push_back(i);
  return columns;
}

/// What all records have in common, or each value once: "float32", "bfloat16, float32".
std::string precisions(const std::vector<Record>& records) {
  std::vector<std::string> values;
  for (const Record& record : records) {
    if (std::find(values.begin(), values.end(), record.precision) == values.end())
      values.push_back(record.precision);
  }
  return join(values, ", ");
}

std::string ceiling_text(const std::vector<Record>& records) {
  for (const Record& record : records) {
    if (record.ceiling)
      return ", ceiling " + decimals(record.ceiling->flops / 1e12, 3) + " TFLOP/s";
  }
  return "";
}

}  // namespace

std::string versions_text(const benchmark::Device& device) {
  std::vector<std::string> parts = {device.backend + " " + device.backend_version};
  for (const auto& [name, version] : device.libraries.items()) {
    if (!version.is_string()) continue;
    const auto text = version.get<std::string>();
    if (!text.empty() && text.find('/') == std::string::npos) parts.push_back(name + " " + text);
  }
  return join(parts, ", ");
}

std::string bench_table(const std::vector<Record>& records, bool colour) {
  const bool compares = records.size() > 1;
  Lines lines = {{"Config",
                  "Tok/s",
                  "±",
                  "Step ms",
                  "Data",
                  "Forward",
                  "Backward",
                  "Optimizer",
                  "Memory",
                  "MFU"}};
  if (compares) lines[0].push_back("vs " + records[0].config);
  for (const Record& record : records) {
    std::vector<std::string> line = {record.config,
                                     speed(record.tokens_per_second),
                                     percent(record.spread),
                                     milliseconds(record.step_seconds),
                                     part(record, &benchmark::Parts::data),
                                     part(record, &benchmark::Parts::forward),
                                     part(record, &benchmark::Parts::backward),
                                     part(record, &benchmark::Parts::optimizer),
                                     human_bytes(static_cast<double>(record.peak_memory_bytes)),
                                     record.mfu ? percent(*record.mfu) : "-"};
    if (compares) line.push_back(ratio_text(record));
    lines.push_back(std::move(line));
  }
  const benchmark::Device& device = records[0].device;
  return table(lines, all_but_first(lines[0].size()), colour) + "\n" + device_text(device) + ", " +
         precisions(records) + ceiling_text(records) + "; " + versions_text(device) + "\n";
}

std::string bench_list(const std::vector<Record>& records, bool colour) {
  Lines lines = {{"Date", "Config", "Tok/s", "±", "Batch", "Precision", "Device", "Benchmark"}};
  for (const Record& record : records) {
    const std::string date = record.call.created.substr(0, 16);
    if (record.kind == benchmark::Kind::operations) {
      lines.push_back({date,
                       std::to_string(record.operations.size()) + " operations",
                       "",
                       "",
                       "",
                       record.precision,
                       device_text(record.device),
                       record.id});
      continue;
    }
    const int64_t length = record.train.value("seq_len", int64_t{0});
    const int64_t rows = record.train.value("batch_size", int64_t{0});
    lines.push_back({date,
                     record.config,
                     speed(record.tokens_per_second),
                     percent(record.spread),
                     std::to_string(rows) + " x " + std::to_string(length),
                     record.precision,
                     device_text(record.device),
                     record.id});
  }
  return table(lines, {2, 3, 4}, colour);
}

std::string operations_table(const Record& record, bool colour) {
  Lines lines = {{"Operation", "Size", "ms", "Peer ms", "Speed-up", "GFLOP/s", "GB/s"}};
  const auto rate = [](const nlohmann::json& operation, const char* key) {
    return operation.contains(key)
               ? with_thousands(std::llround(operation.at(key).get<double>() / 1e9))
               : std::string("-");
  };
  for (const nlohmann::json& operation : record.operations) {
    const double seconds = operation.at("seconds").get<double>();
    const double peer = operation.at("peer_seconds").get<double>();
    lines.push_back({operation.at("operation").get<std::string>(),
                     operation.at("size").get<std::string>(),
                     decimals(seconds * 1000, 3),
                     decimals(peer * 1000, 3),
                     decimals(peer / seconds, 2),
                     rate(operation, "flops_per_second"),
                     rate(operation, "bytes_per_second")});
  }
  const nlohmann::json none = nlohmann::json::object();
  lines.push_back({"ceiling",
                   "",
                   "",
                   "",
                   "",
                   rate(record.ceilings.value("matrix_product", none), "flops"),
                   rate(record.ceilings.value("memory", none), "bytes_per_second")});
  return table(lines, {2, 3, 4, 5, 6}, colour) + "\n" + device_text(record.device) + ", " +
         record.precision + "; " + versions_text(record.device) + "\n";
}

}  // namespace forge::app
