#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/model/weights/dtype.h"
#include "core/model/weights/safetensors.h"
#include "tests/core/model/weights/damage.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

using tests::contains;
using tests::error_of;

template <class T>
TensorView view(Dtype dtype, const std::vector<T>& values) {
  return {dtype,
          {static_cast<int64_t>(values.size())},
          reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

template <class T>
std::vector<uint16_t> narrowed(const std::vector<T>& values, Dtype from, Dtype to) {
  std::vector<uint16_t> bits(values.size());
  convert(view(from, values), 0, values.size(), to, reinterpret_cast<std::byte*>(bits.data()));
  return bits;
}

std::vector<uint16_t> halves(const std::vector<float>& values) {
  return narrowed(values, Dtype::f32, Dtype::f16);
}

std::vector<uint16_t> bfloats(const std::vector<float>& values) {
  return narrowed(values, Dtype::f32, Dtype::bf16);
}

/// Every pattern of 16 bits.
std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns;
  for (int bits = 0; bits < 65536; ++bits) patterns.push_back(static_cast<uint16_t>(bits));
  return patterns;
}

TEST_CASE("float16 has the values of IEEE 754 half precision") {
  const std::vector<uint16_t> bits = {
      0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x7c00, 0x3555};
  const std::vector<float> values = to_float32(view(Dtype::f16, bits));
  const std::vector<float> expected = {
      0, -0.0f, 1, -2, 65504, 0x1p-14f, 0x1p-24f, -1023 * 0x1p-24f, HUGE_VALF, 1365 * 0x1p-12f};
  REQUIRE(std::memcmp(values.data(), expected.data(), 4 * values.size()) == 0);
}

TEST_CASE("bfloat16 is the upper half of a float32") {
  const std::vector<uint16_t> bits = {0x3f80, 0xc000, 0x7f80, 0x0001};
  REQUIRE(to_float32(view(Dtype::bf16, bits)) == std::vector<float>{1, -2, HUGE_VALF, 0x1p-133f});
}

TEST_CASE("every number of 16 bits comes back from float32 with its bits") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const std::vector<uint16_t> patterns = all_patterns();
    const std::vector<float> wide = to_float32(view(dtype, patterns));
    const std::vector<uint16_t> back = narrowed(wide, Dtype::f32, dtype);
    const std::vector<float> again = to_float32(view(dtype, back));
    size_t wrong = 0;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const bool same = std::isnan(wide[i]) ? std::isnan(again[i]) : back[i] == patterns[i];
      if (!same) ++wrong;
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("narrowing rounds to the nearest and ties to even") {
  // Around 1, float16 has steps of 2^-10 and bfloat16 of 2^-7.
  REQUIRE(halves({1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-11f + 0x1p-20f, 1 - 0x1p-13f}) ==
          std::vector<uint16_t>{0x3c00, 0x3c02, 0x3c01, 0x3c00});
  REQUIRE(bfloats({1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1p-8f + 0x1p-20f, -1 - 0x1p-8f}) ==
          std::vector<uint16_t>{0x3f80, 0x3f82, 0x3f81, 0xbf80});
  // Below 2^-14 float16 has steps of 2^-24, and half of the first one goes to zero.
  REQUIRE(halves({0x1p-25f, 0x1p-25f + 0x1p-40f, 3 * 0x1p-25f, -0x1p-26f}) ==
          std::vector<uint16_t>{0x0000, 0x0001, 0x0002, 0x8000});
  REQUIRE(halves({65519}) == std::vector<uint16_t>{0x7bff});
}

TEST_CASE("float64 is rounded to the nearest float32") {
  const std::vector<double> values = {0.1, 1 + 0x1p-24, 1 + 3 * 0x1p-24, -1e-300, 3.4028235e38};
  REQUIRE(to_float32(view(Dtype::f64, values)) ==
          std::vector<float>{0.1f, 1, 1 + 0x1p-22f, -0.0f, 3.4028235e38f});
}

TEST_CASE("a value that would become infinite is refused and an infinite one is not") {
  REQUIRE(contains(error_of([] { halves({1, 65520}); }), "has the value 65520.0"));
  REQUIRE(contains(error_of([] { halves({-7e4f}); }), "beyond the range of F16"));
  REQUIRE(contains(error_of([] { bfloats({3.4e38f}); }), "beyond the range of BF16"));
  const std::vector<double> large = {-1e39};
  REQUIRE(contains(error_of([&] { to_float32(view(Dtype::f64, large)); }),
                   "has the value -1e+39, beyond the range of F32"));
  REQUIRE(halves({HUGE_VALF, -HUGE_VALF}) == std::vector<uint16_t>{0x7c00, 0xfc00});
  const std::vector<double> infinite = {-HUGE_VAL};
  REQUIRE(to_float32(view(Dtype::f64, infinite)) == std::vector<float>{-HUGE_VALF});
}

TEST_CASE("what is no number stays none") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(std::isnan(to_float32(view(Dtype::f16, halves({nan})))[0]));
  REQUIRE(std::isnan(to_float32(view(Dtype::bf16, bfloats({nan})))[0]));
}

TEST_CASE("values at any address are read") {
  const std::vector<float> values = {1.5f, -2.5f};
  std::vector<std::byte> bytes(9);
  std::memcpy(bytes.data() + 1, values.data(), 8);
  REQUIRE(to_float32({Dtype::f32, {2}, bytes.data() + 1, 8}) == values);
}

TEST_CASE("whole numbers are not converted") {
  const std::vector<int32_t> values = {1};
  REQUIRE(contains(error_of([&] { to_float32(view(Dtype::i32, values)); }),
                   "has the dtype I32, which is no floating one"));
}

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

template <class T>
TensorView view(Dtype dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {dtype,
          std::move(shape),
          reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

/// A file's bytes: the length of the header, the header, the data.
std::string file_bytes(const std::string& header, const std::string& data) {
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

/// What opening a file of these bytes says, "" where it opens.
std::string fault_of(const std::string& bytes) {
  const TemporaryFolder folder;
  tests::overwrite(folder / "x.safetensors", bytes);
  return error_of([&] { SafetensorsFile{folder / "x.safetensors"}; });
}

std::string fault_of(const std::string& header, size_t data_bytes) {
  return fault_of(file_bytes(header, std::string(data_bytes, '\0')));
}

/// Touches every byte of every tensor, so that a sanitizer sees a view that leaves the file.
size_t sum_of_bytes(const SafetensorsFile& file) {
  size_t sum = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    for (size_t i = 0; i < tensor.bytes; ++i) sum += static_cast<size_t>(tensor.data[i]);
  }
  return sum;
}

/// A valid file with several dtypes, an empty tensor and a scalar.
std::string sample_bytes(const TemporaryFolder& folder) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> step = {7};
  const std::vector<uint8_t> bytes = {8, 9, 10};
  const std::vector<float> none;
  write_safetensors(folder / "sample.safetensors",
                    {{"bytes", view(Dtype::u8, {3}, bytes)},
                     {"empty", view(Dtype::f32, {0, 4}, none)},
                     {"step", view(Dtype::i64, {}, step)},
                     {"weights", view(Dtype::f32, {2, 3}, weights)}},
                    {{"format", "forge"}});
  return read_file(folder / "sample.safetensors");
}

TEST_CASE("tensors and metadata come back as they were written") {
  const TemporaryFolder folder;
  const std::string bytes = sample_bytes(folder);
  const SafetensorsFile file(folder / "sample.safetensors");
  REQUIRE(file.tensors().size() == 4);
  REQUIRE(file.metadata() == std::map<std::string, std::string>{{"format", "forge"}});

  const TensorView& weights = file.tensor("weights");
  REQUIRE(weights.dtype == Dtype::f32);
  REQUIRE(weights.shape == std::vector<int64_t>{2, 3});
  float last = 0;
  std::memcpy(&last, weights.data + 20, sizeof last);
  REQUIRE(last == 6);
  REQUIRE(file.tensor("step").shape.empty());
  REQUIRE(file.tensor("step").bytes == 8);
  REQUIRE(file.tensor("empty").bytes == 0);
  REQUIRE(static_cast<int>(file.tensor("bytes").data[2]) == 10);
}

TEST_CASE("data begins at a multiple of 64 bytes and every tensor is aligned to its dtype") {
  const TemporaryFolder folder;
  sample_bytes(folder);
  const SafetensorsFile file(folder / "sample.safetensors");
  const auto address = [&](const char* name) {
    return reinterpret_cast<uintptr_t>(file.tensor(name).data);
  };
  REQUIRE(address("step") % 64 == 0);  // the widest dtype comes first
  REQUIRE(address("weights") % 4 == 0);
}

TEST_CASE("every dtype keeps its name and size") {
  const TemporaryFolder folder;
  const std::vector<std::byte> data(16);
  std::map<std::string, TensorView> tensors;
  const std::vector<std::pair<Dtype, size_t>> sizes = {{Dtype::f64, 8},
                                                       {Dtype::f32, 4},
                                                       {Dtype::f16, 2},
                                                       {Dtype::bf16, 2},
                                                       {Dtype::i64, 8},
                                                       {Dtype::i32, 4},
                                                       {Dtype::u8, 1}};
  for (const auto& [dtype, size] : sizes) {
    tensors[std::to_string(static_cast<int>(dtype))] = {dtype, {2}, data.data(), 2 * size};
  }
  write_safetensors(folder / "all", tensors);
  const SafetensorsFile file(folder / "all");
  for (const auto& [dtype, size] : sizes) {
    REQUIRE(file.tensor(std::to_string(static_cast<int>(dtype))).dtype == dtype);
    REQUIRE(bytes_of(dtype) == size);
  }
}

TEST_CASE("a file with no tensors can be written and read") {
  const TemporaryFolder folder;
  REQUIRE(write_safetensors(folder / "none", {}) == 64);
  REQUIRE(SafetensorsFile(folder / "none").tensors().empty());
}

TEST_CASE("the returned size is that of the file and nothing else is left beside it") {
  const TemporaryFolder folder;
  const std::vector<float> values(1000, 1.5f);
  const int64_t bytes = write_safetensors(folder / "x", {{"v", view(Dtype::f32, {1000}, values)}});
  REQUIRE(static_cast<uintmax_t>(bytes) == fs::file_size(folder / "x"));
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a file of another writer that pads nothing is read") {
  const TemporaryFolder folder;
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  const SafetensorsFile file(folder.write("x", file_bytes(header, std::string(5, 'x'))));
  REQUIRE(file.tensor("a").bytes == 4);
}

TEST_CASE("an unknown tensor is named with near misses") {
  const TemporaryFolder folder;
  sample_bytes(folder);
  const SafetensorsFile file(folder / "sample.safetensors");
  const std::string message = error_of([&] { file.tensor("weight"); });
  REQUIRE(contains(message, "has no tensor 'weight'"));
  REQUIRE(contains(message, "did you mean 'weights'?"));
}

TEST_CASE("writing refuses a view that is not as large as its shape") {
  const TemporaryFolder folder;
  const std::vector<float> values(4);
  const std::vector<std::vector<int64_t>> wrong = {
      {5}, {3}, {-4}, {int64_t{1} << 40, int64_t{1} << 40}};
  for (const auto& shape : wrong) {
    REQUIRE(contains(error_of([&] {
                       write_safetensors(folder / "x", {{"v", view(Dtype::f32, shape, values)}});
                     }),
                     "tensor 'v' has 16 bytes"));
  }
  REQUIRE(
      contains(error_of([&] {
                 write_safetensors(folder / "x", {{"__metadata__", view(Dtype::f32, {4}, values)}});
               }),
               "__metadata__"));
  REQUIRE_FALSE(fs::exists(folder / "x"));
}

TEST_CASE("writing into a missing folder names the path") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_of([&] { write_safetensors(folder / "no/x", {}); }), "no/x"));
}

TEST_CASE("a file shorter than its header is refused") {
  REQUIRE(contains(fault_of(""), "is shorter than the length of its header"));
  REQUIRE(contains(fault_of("1234567"), "is shorter than the length of its header"));
  REQUIRE(contains(fault_of(file_bytes("{}", "").substr(0, 9)),
                   "is not a sound safetensors file: it ends within its header"));
}

TEST_CASE("a header length beyond the limit is refused before it is read") {
  REQUIRE(contains(fault_of(std::string(8, '\xff') + "{}"), "at most 50000000"));
  REQUIRE(
      contains(fault_of(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8) + "{}"), "at most 50000000"));
}

TEST_CASE("the fault of a tensor is told as a sentence about it") {
  REQUIRE(contains(fault_of("{\"a\":{}}", 0), "safetensors file: tensor 'a' has no dtype"));
}

TEST_CASE("a header that is no JSON object is refused") {
  REQUIRE(contains(fault_of("", 0), "does not begin with '{'"));
  REQUIRE(contains(fault_of("[]", 0), "does not begin with '{'"));
  REQUIRE(contains(fault_of("{", 0), "is not JSON"));
  REQUIRE(contains(fault_of("{} {}", 0), "is not JSON"));
  REQUIRE(contains(fault_of("{\"\xff\":1}", 0), "is not JSON: byte 3 is not UTF-8"));
  REQUIRE(contains(fault_of("{\"a\" 1}", 0), "is not JSON: byte 6 is out of place"));
  REQUIRE(contains(fault_of(R"({"a":1})", 0), "tensor 'a' is not described by an object"));
}

TEST_CASE("names given twice are refused") {
  const std::string entry = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  REQUIRE(fault_of("{" + entry + "}", 0).empty());
  REQUIRE(contains(fault_of("{" + entry + "," + entry + "}", 0), "names 'a' twice"));
  REQUIRE(
      contains(fault_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
               "names 'dtype' twice"));
}

TEST_CASE("two tensors may have the same keys") {
  REQUIRE(fault_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                   R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                   2)
              .empty());
}

TEST_CASE("deep nesting is refused without recursion") {
  std::string nested = R"({"a":{"shape":)";
  for (int i = 0; i < 100000; ++i) nested += "[";
  REQUIRE(contains(fault_of(nested, 0), "nested too deeply"));
}

TEST_CASE("a tensor with a wrong part is named") {
  const auto fault = [](const std::string& entry) { return fault_of("{\"a\":" + entry + "}", 8); };
  REQUIRE(fault(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})").empty());
  REQUIRE(contains(fault(R"({"shape":[2],"data_offsets":[0,8]})"), "'a' has no dtype"));
  REQUIRE(contains(fault(R"({"dtype":"F32","data_offsets":[0,8]})"), "'a' has no shape"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[2]})"), "'a' has no data_offsets"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
                   "more than dtype"));
  REQUIRE(contains(fault(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), "dtype 'F31'"));
  REQUIRE(contains(fault(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), "no text"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "no list"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "whole number"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "whole number"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "not two numbers"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[2],"data_offsets":["0",8]})"), "whole number"));
  REQUIRE(
      contains(fault(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "before it begins"));
  REQUIRE(contains(fault(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "asks for 12"));
}

TEST_CASE("a header cannot make its reader collect what no tensor needs") {
  std::string numbers = "1";
  for (int i = 0; i < 64; ++i) numbers += ",1";
  REQUIRE(contains(fault_of(R"({"a":{"dtype":"U8","shape":[)" + numbers + "]}}", 0),
                   "tensor 'a' has a list of more than 64 numbers"));
  std::string keys = R"("k":"v")";
  for (int i = 0; i < 65536; ++i) keys += ",\"" + std::to_string(i) + R"(":"")";
  REQUIRE(contains(fault_of(R"({"__metadata__":{)" + keys + "}}", 0), "more than 65536 keys"));
}

TEST_CASE("a name in a message cannot steer a terminal or fill the screen") {
  REQUIRE(contains(fault_of(R"({"a\u001b[2J":{}})", 0), R"(tensor 'a\u001b[2J' has no dtype)"));
  const std::string message = fault_of("{\"" + std::string(5000, 'a') + "\":{}}", 0);
  REQUIRE(contains(message, "aaa…' has no dtype"));
  REQUIRE(message.size() < 600);
}

TEST_CASE("a shape whose product overflows is refused") {
  const auto fault = [](const std::string& shape) {
    return fault_of(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})", 0);
  };
  REQUIRE(contains(fault("[4294967296,4294967296]"), "impossibly large"));  // 2^64 wraps to 0
  REQUIRE(contains(fault("[18446744073709551615]"), "impossibly large"));
  REQUIRE(contains(fault("[99999999999999999999999]"), "whole number"));
}

TEST_CASE("overlap and gap and data out of range are refused") {
  const auto fault = [](const std::string& a, const std::string& b) {
    return fault_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                    8);
  };
  REQUIRE(fault("[0,4]", "[4,8]").empty());
  REQUIRE(fault("[4,8]", "[0,4]").empty());
  REQUIRE(contains(fault("[0,4]", "[3,7]"), "overlaps"));
  REQUIRE(contains(fault("[0,4]", "[0,4]"), "overlaps"));
  REQUIRE(contains(fault("[0,4]", "[5,9]"), "gap"));
  REQUIRE(contains(fault("[1,5]", "[5,9]"), "gap"));
  REQUIRE(contains(fault_of(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8),
                   "ends within tensor 'a'"));
  REQUIRE(contains(fault_of(R"({"a":{"dtype":"U8","shape":[7],"data_offsets":[0,7]}})", 8),
                   "1 bytes that belong to no tensor"));
}

TEST_CASE("metadata must be text") {
  REQUIRE(fault_of(R"({"__metadata__":{"a":"b"}})", 0).empty());
  REQUIRE(contains(fault_of(R"({"__metadata__":{"a":1}})", 0), "'a' that is no text"));
  REQUIRE(contains(fault_of(R"({"__metadata__":[]})", 0), "no object"));
  REQUIRE(contains(fault_of(R"({"__metadata__":"text"})", 0), "no object"));
}

TEST_CASE("every truncation of a file is refused") {
  const TemporaryFolder folder;
  const fs::path file = folder / "sample.safetensors";
  for (size_t size = sample_bytes(folder).size(); size-- > 0;) {
    fs::resize_file(file, size);
    INFO("cut to " << size);
    REQUIRE_FALSE(error_of([&] { SafetensorsFile{file}; }).empty());
  }
}

TEST_CASE("a flipped bit anywhere is refused or leaves every view inside the file") {
  const TemporaryFolder folder;
  const fs::path file = folder / "sample.safetensors";
  const size_t bits = 8 * sample_bytes(folder).size();
  size_t refused = 0;
  for (size_t bit = 0; bit < bits; ++bit) {
    tests::flip_bit(file, bit);
    const std::string message = error_of([&] {
      const SafetensorsFile opened(file);
      REQUIRE(sum_of_bytes(opened) > 0);
    });
    if (!message.empty()) ++refused;
    tests::flip_bit(file, bit);
  }
  // What passes is a changed name, key of the metadata or value; the format has no checksum.
  REQUIRE(refused > 1500);
}

TEST_CASE("a header of more tensors than a model has is refused", "[hostile][slow]") {
  std::string header = "{";
  for (int i = 0; i <= 250'000; ++i)
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
              "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
  REQUIRE(contains(fault_of(file_bytes(header + "}", "")), "more than 250000 tensors"));
}

}  // namespace
}  // namespace forge::weights
