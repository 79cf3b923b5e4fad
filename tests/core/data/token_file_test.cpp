#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"

#include <cstring>

#include "core/base/hash.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

const std::string fingerprint = hash_hex("a tokenizer");

std::filesystem::path write_ids(const tests::TemporaryFolder& folder,
                                const std::vector<int32_t>& ids,
                                int vocab_size) {
  TokenFileWriter writer(folder / "a.tokens", vocab_size, fingerprint);
  writer.append(ids.data(), 2);
  writer.append(ids.data() + 2, ids.size() - 2);
  REQUIRE(writer.size() == static_cast<int64_t>(ids.size()));
  writer.finish();
  return folder / "a.tokens";
}

TEST_CASE("a token file gives back its ids in two or four bytes each") {
  tests::TemporaryFolder folder;
  for (const int vocab_size : {65536, 65537}) {
    const std::vector<int32_t> ids = {0, 1, 65535, 7, 300};
    const auto path = write_ids(folder, ids, vocab_size);
    const size_t bytes = vocab_size == 65536 ? 2 : 4;
    REQUIRE(std::filesystem::file_size(path) == (72 + 5 * bytes + 7) / 8 * 8);
    const TokenFile file(path);
    REQUIRE(file.size() == 5);
    std::vector<int32_t> read(3);
    file.read(1, 3, read.data());
    REQUIRE(read == std::vector<int32_t>{1, 65535, 7});
    REQUIRE(file.tokenizer_fingerprint() == fingerprint);
    file.check_content();
  }
}

TEST_CASE("the header is where other programs may expect it") {
  tests::TemporaryFolder folder;
  const std::string content = read_file(write_ids(folder, {258, 1, 2}, 2000));
  REQUIRE(content.substr(0, 8) == "forgetok");
  REQUIRE(content.substr(8, 8) == std::string("\2\0\0\0\2\0\0\0", 8));
  REQUIRE(content.substr(16, 8) == std::string("\3\0\0\0\0\0\0\0", 8));
  REQUIRE(content.substr(72) == std::string("\2\1\1\0\2\0\0\0", 8));
}

TEST_CASE("reading outside a token file is refused") {
  tests::TemporaryFolder folder;
  const TokenFile file(write_ids(folder, {1, 2, 3}, 2000));
  std::vector<int32_t> ids(8);
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 4}, {3, 1}, {-1, 1}, {0, -1}, {INT64_MAX, 1}, {1, INT64_MAX}}) {
    REQUIRE(tests::error_of([&, f = first, n = count] { file.read(f, n, ids.data()); }) != "");
  }
  file.read(3, 0, ids.data());
}

TEST_CASE("a damaged token file is refused with what is wrong") {
  tests::TemporaryFolder folder;
  const std::string whole = read_file(write_ids(folder, {1, 2, 3, 4}, 2000));
  const auto error = [&](std::string content) {
    const auto path = folder.write("bad.tokens", content);
    return tests::error_of([&] { TokenFile(path).check_content(); });
  };
  REQUIRE(error(whole) == "");
  REQUIRE(error("").find("ends within its header") != std::string::npos);
  REQUIRE(error(whole.substr(0, 71)).find("ends within its header") != std::string::npos);
  REQUIRE(error(whole.substr(0, whole.size() - 1)).find("has 79 bytes, its header says 80") !=
          std::string::npos);
  REQUIRE(error(whole + "x").find("its header says 80") != std::string::npos);
  REQUIRE(error("F" + whole.substr(1)).find("does not begin with") != std::string::npos);
  for (size_t place = 12; place < 72; ++place) {
    std::string damaged = whole;
    damaged[place] ^= 0x40;
    REQUIRE(error(damaged).find("its header is damaged") != std::string::npos);
  }
  std::string newer = whole;
  newer[8] = 3;
  REQUIRE(error(newer).find("version 3") != std::string::npos);
  std::string older = whole;
  older[8] = 1;
  REQUIRE(error(older).find("version 1") != std::string::npos);
  std::string changed = whole;
  changed[74] ^= 1;
  REQUIRE(error(changed).find("does not have the hash") != std::string::npos);
}

TEST_CASE("a token file is not seen before it is finished and leaves nothing when given up") {
  tests::TemporaryFolder folder;
  {
    TokenFileWriter writer(folder / "a.tokens", 2000, fingerprint);
    const int32_t id = 5;
    writer.append(&id, 1);
    REQUIRE_FALSE(std::filesystem::exists(folder / "a.tokens"));
  }
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("ids that do not fit are refused") {
  tests::TemporaryFolder folder;
  TokenFileWriter writer(folder / "a.tokens", 2000, fingerprint);
  for (const int32_t id : {-1, 65536}) {
    REQUIRE(tests::error_of([&] { writer.append(&id, 1); }).find("does not fit") !=
            std::string::npos);
  }
  REQUIRE(tests::error_of([&] { TokenFileWriter(folder / "b.tokens", 2000, "short"); }) != "");
}

}  // namespace
}  // namespace forge::data
