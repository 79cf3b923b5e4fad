#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/parallel.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge {
namespace {

TEST_CASE("of a long line an error shows the part around its place") {
  const std::string line = std::string(100'000, '[') + "äx" + std::string(100'000, ']');
  const auto source = std::make_shared<SourceText>(SourceText{"deep.yaml", "", line, 1});
  const std::string text = describe(Error("too deep", make_span(source, 1, 100'003)));
  INFO(text);
  CHECK(text.size() < 600);
  const auto lines = split(text, '\n');
  REQUIRE(lines.size() == 3);
  CHECK(starts_with(lines[1], "    …[[["));
  CHECK(ends_with(lines[1], "]]…"));
  // The caret is below the x; "…" has three bytes and "ä" two, of a column each.
  CHECK(lines[2].find('^') == lines[1].find('x') - 2);
  CHECK(describe(Error("short", make_span(source, 1, 1))).size() < 600);
}

TEST_CASE("an exception has the exit code of whose fault it is") {
  const auto code = [](const std::exception& problem) { return as_error(problem).exit_code(); };
  CHECK(code(Error("no such key")) == ExitCode::usage);
  const auto refused = [](std::errc reason) {
    return std::filesystem::filesystem_error("cannot copy", std::make_error_code(reason));
  };
  CHECK(code(refused(std::errc::permission_denied)) == ExitCode::failed);
  CHECK(code(refused(std::errc::no_space_on_device)) == ExitCode::storage);
  CHECK(code(std::bad_alloc()) == ExitCode::failed);
  CHECK(code(std::out_of_range("map::at")) == ExitCode::internal);
  const Error closed = as_error(std::filesystem::filesystem_error(
      "status", "/root/x", std::make_error_code(std::errc::permission_denied)));
  CHECK(closed.message() == "cannot use '/root/x': Permission denied");
  CHECK(closed.hint().find("ask its owner") != std::string::npos);
  const Error lost = as_error(std::filesystem::filesystem_error(
      "cannot get current path", std::make_error_code(std::errc::no_such_file_or_directory)));
  CHECK(lost.message() == "cannot find the current folder: No such file or directory");
  CHECK(lost.hint().find("go to another one") != std::string::npos);
  CHECK(as_error(refused(std::errc::permission_denied)).message() ==
        "cannot use a file or folder: Permission denied");
  const Error limited =
      as_error(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  CHECK(limited.message() == "could not start a thread or a process: a limit is reached");
  CHECK(limited.hint().find("ulimit -v") != std::string::npos);
  CHECK(as_error(std::out_of_range("map::at")).hint().find("report it") != std::string::npos);
}

TEST_CASE("an error shows the place, the line, a caret, the way there and a hint") {
  auto parent = std::make_shared<SourceText>(SourceText{"parent.yaml", "", "-- extends 'x'\n", 1});
  auto source =
      std::make_shared<SourceText>(SourceText{"configs/a.yaml", "part", "k: v\n\thiden: 1\n", 11});
  SourceSpan span = make_span(source, 12, 2);
  span.via = std::make_shared<SourceSpan>(make_span(parent, 1, 4));
  const Error error("unknown key 'hiden'", span, "did you mean 'hidden'?");
  REQUIRE(describe(error) ==
          "configs/a.yaml:12:2 (inline part): error: unknown key 'hiden'\n"
          "    \thiden: 1\n"
          "    \t^\n"
          "  used from parent.yaml:1:4\n"
          "hint: did you mean 'hidden'?");
}

TEST_CASE("an error without a place is one line") {
  REQUIRE(describe(Error("no such config")) == "error: no such config");
}

TEST_CASE("no name makes a message look like another one", "[hostile]") {
  const Error error("no run 'a\nerror: \x1b[2J\x1b[31m'", "b\nhint: c\x1b[1m");
  REQUIRE(describe(error) == "error: no run 'a error: [2J[31m'\nhint: b\n      hint: c[1m");
}

TEST_CASE("near misses are the few known words that are a typing error away") {
  const std::vector<std::string> keys = {"hidden_size", "num_layers", "num_heads", "vocab_size"};
  REQUIRE(did_you_mean("hiden_size", keys) == "did you mean 'hidden_size'?");
  REQUIRE(did_you_mean("learning_rate", keys).empty());
  REQUIRE(did_you_mean("torch", {"libtorch", "external", "pytorch"}) ==
          "did you mean 'pytorch' or 'libtorch'?");
  REQUIRE(near_misses("num_heads", keys).front() == "num_heads");
}

TEST_CASE("edit distance counts insertions and deletions and replacements and swaps") {
  REQUIRE(edit_distance("", "abc") == 3);
  REQUIRE(edit_distance("kitten", "sitting") == 3);
  REQUIRE(edit_distance("same", "same") == 0);
  REQUIRE(edit_distance("rnu", "run") == 1);
  REQUIRE(edit_distance("ab", "ba") == 1);
}

TEST_CASE("numbers are written as a reader expects them") {
  REQUIRE(with_thousands(0) == "0");
  REQUIRE(with_thousands(999) == "999");
  REQUIRE(with_thousands(-1234567) == "-1,234,567");
  REQUIRE(counted(1, "seed") == "1 seed");
  REQUIRE(counted(2000, "seed") == "2,000 seeds");
  REQUIRE(human_bytes(512) == "512 B");
  REQUIRE(human_bytes(1536) == "1.50 KiB");
  REQUIRE(human_duration(42.4) == "42s");
  REQUIRE(human_duration(200) == "3m 20s");
  REQUIRE(human_duration(7500) == "2h 05m");
}

TEST_CASE("shortest is Python's repr of a float") {
  REQUIRE(shortest(0.001) == "0.001");
  REQUIRE(shortest(1e-5) == "1e-05");
  REQUIRE(shortest(6.0) == "6.0");
  REQUIRE(shortest(1e16) == "1e+16");
  REQUIRE(shortest(123456789012345.0) == "123456789012345.0");
  REQUIRE(shortest(0.1 + 0.2) == "0.30000000000000004");
  REQUIRE(shortest(-0.0) == "-0.0");
}

TEST_CASE("split keeps empty parts and join undoes it") {
  REQUIRE(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  REQUIRE(join(split("a,,b", ','), ",") == "a,,b");
}

}  // namespace

TEST_CASE("a dotted key leads through nested objects") {
  const nlohmann::json object = {{"model", {{"canon", {{"set", "AC"}}}}}, {"seed", 42}};
  REQUIRE(*find_value(object, "seed") == 42);
  REQUIRE(*find_value(object, "model.canon.set") == "AC");
  REQUIRE(find_value(object, "model")->is_object());
  for (const char* key : {"", "x", "model.x", "seed.x", "model.canon.set.x", "model.", ".seed"})
    REQUIRE(find_value(object, key) == nullptr);
  REQUIRE(find_value(nullptr, "seed") == nullptr);
}

namespace {

TEST_CASE("the hash is XXH3-128 in canonical order, however the bytes arrive") {
  REQUIRE(hash_hex("") == "99aa06d3014798d86001c324468d497f");
  Hasher parts;
  parts.update("canon ");
  parts.update("layers");
  REQUIRE(parts.hex() == hash_hex("canon layers"));
  const tests::TemporaryFolder folder;
  REQUIRE(hash_file(folder.write("f", "canon layers")) == hash_hex("canon layers"));
}

TEST_CASE("Philox4x32-10 gives the known answers of its authors' test file") {
  // kat_vectors of the Random123 distribution.
  REQUIRE(philox({0, 0, 0, 0}, 0) ==
          std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ~uint64_t{0}) ==
          std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
          std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream can be entered at any position") {
  RandomStream from_start(7, 3);
  for (int i = 0; i < 10; ++i) from_start.next_u32();
  RandomStream from_ten(7, 3, 10);
  for (int i = 0; i < 9; ++i) REQUIRE(from_start.next_u32() == from_ten.next_u32());
}

TEST_CASE("below stays below its bound and reaches every number") {
  RandomStream random(1, 2);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  REQUIRE(seen == std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 100; ++i) REQUIRE(random.below(uint64_t{1} << 40) < uint64_t{1} << 40);
}

TEST_CASE("portable_log agrees with the C library to the last bits") {
  for (double x = 1e-12; x < 1e12; x *= 1.37) {
    REQUIRE(std::fabs(portable_log(x) - std::log(x)) <=
            4e-16 * std::max(1.0, std::fabs(std::log(x))));
  }
}

TEST_CASE("portable_exp agrees with the C library to the last bits") {
  for (double x = -744; x < 709; x += 0.37) {
    REQUIRE(std::fabs(portable_exp(x) - std::exp(x)) <= 4e-16 * std::exp(x) + 5e-324);
  }
  REQUIRE(portable_exp(0) == 1);
  REQUIRE(portable_exp(-1e300) == 0);
  REQUIRE(std::isinf(portable_exp(1e300)));
  REQUIRE(portable_exp(-std::numeric_limits<double>::infinity()) == 0);
  REQUIRE(std::isnan(portable_exp(std::nan(""))));
}

TEST_CASE("the normal quantile inverts the distribution function") {
  // erfc loses digits far above the mean, so the upper tail is checked by symmetry.
  for (const double x : {-8.0, -5.5, -3.0, -1.5, -0.5, -0.01, 0.3, 1.0}) {
    REQUIRE(normal_quantile(normal_cdf(x)) == Approx(x).epsilon(1e-13));
  }
  REQUIRE(normal_quantile(0.975) == Approx(1.959963984540054).epsilon(1e-15));
  REQUIRE(normal_quantile(0.75) == -normal_quantile(0.25));
}

TEST_CASE("permuted_index is a permutation, another one for another seed") {
  for (const uint64_t size : {1u, 2u, 3u, 10u, 64u, 1000u}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(permuted_index(i, size, 5, 1));
    REQUIRE(seen.size() == size);
    REQUIRE(*seen.rbegin() == size - 1);
  }
  int moved = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    moved += permuted_index(i, 1000, 5, 1) != permuted_index(i, 1000, 6, 1);
  }
  REQUIRE(moved > 900);
}

TEST_CASE("a time is written as a UTC date or as seconds since 1970") {
  REQUIRE(parse_time("1700000000") == 1700000000);
  REQUIRE(parse_time("2023-11-14T22:13:20Z") == 1700000000);
  REQUIRE(parse_time("2023-11-14T22:13:20") == 1700000000);
  REQUIRE(parse_time("2023-11-14") == 1699920000);
  for (const char* text :
       {"", "yesterday", "2023-11-14T", "12:00", "-5", "1234567890123", "2026-02-30"}) {
    INFO(text);
    REQUIRE(tests::error_of([&] { parse_time(text); }).find("is no time") != std::string::npos);
  }
}

TEST_CASE("a time in a file's name has neither dashes nor colons") {
  REQUIRE(compact_timestamp("2026-11-21T03:40:12.345Z") == "20261121T034012Z");
  REQUIRE(compact_timestamp(utc_timestamp(1700000000)) == "20231114T221320Z");
  REQUIRE(utc_timestamp(1e300) == "9999-12-31T23:59:59.000Z");
  REQUIRE(utc_timestamp(-1e300) == "1970-01-01T00:00:00.000Z");
}

}  // namespace
}  // namespace forge

namespace forge::tests {
namespace {

TEST_CASE("parallel_for calls every index once") {
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    parallel_for(count, [&](size_t i) { ++calls[i]; });
    for (const auto& number : calls) CHECK(number == 1);
  }
}

TEST_CASE("parallel_for counts the calls that are through, and ends where that throws") {
  std::vector<size_t> counted;
  parallel_for(
      100,
      [](size_t) {},
      [&](size_t done, size_t all) {
        CHECK(all == 100);
        counted.push_back(done);
      });
  REQUIRE(counted.size() == 100);
  for (size_t i = 0; i < counted.size(); ++i) REQUIRE(counted[i] == i + 1);
  REQUIRE_THROWS_AS(
      parallel_for(
          100, [](size_t) {}, [](size_t, size_t) { throw std::runtime_error("end"); }),
      std::runtime_error);
}

TEST_CASE("parallel_for throws the first exception by index") {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::string thrown;
    try {
      parallel_for(100, [&](size_t i) {
        if (i == 40 || i == 41 || i == 99) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    CHECK(thrown == "40");
  }
}

TEST_CASE("a printed command is what its words were") {
  REQUIRE(shell_quoted({"forge", "run", "a-b_c.d/e", "train.max_steps=5"}) ==
          "forge run a-b_c.d/e train.max_steps=5");
  REQUIRE(shell_quoted(std::string_view("")) == "''");
  REQUIRE(shell_quoted("eval_loss<0.5") == "'eval_loss<0.5'");
  REQUIRE(shell_quoted("=cmd") == "'=cmd'");
  REQUIRE(shell_quoted("it's $HOME") == "'it'\\''s $HOME'");
  REQUIRE(shell_quoted("a\nb'\x1b\\") == "$'a\\012b\\'\\033\\\\'");
}

TEST_CASE("a command in a sentence is one that can be pasted", "[hostile]") {
  const auto hint = [](const std::string& config) {
    return quoted_command("forge run " + shell_quoted(config)) + " trains it";
  };
  REQUIRE(hint("train_llama") == "'forge run train_llama' trains it");
  REQUIRE(hint("x; touch f") == "forge run 'x; touch f' trains it");
  REQUIRE(hint("a\nb") == "forge run $'a\\012b' trains it");
}

TEST_CASE("a recorded command of somebody else runs nothing more when it is pasted", "[hostile]") {
  REQUIRE(pasteable("forge run train_llama --seeds 3") == "forge run train_llama --seeds 3");
  REQUIRE(pasteable("forge run a; rm -rf ~") == "forge run 'a;' rm -rf '~'");
  REQUIRE(pasteable("forge runs --where seed<44") == "forge runs --where 'seed<44'");
  for (const std::string word : {"a b", "it's", "$(id)", "a\nb'\x1b\\", "", "=x", "\\", "$'"}) {
    const std::string command = shell_quoted({"forge", "run", word, "b"});
    CAPTURE(command);
    REQUIRE(pasteable(command) == command);
  }
}

TEST_CASE("JSON that has a key twice in one object is refused", "[json][hostile]") {
  const auto problem = [](const std::string& text) {
    return tests::error_of([&] { read_json_text(text); });
  };
  REQUIRE(tests::contains(problem(R"({"seed": 1, "train": {"seed": 1}, "seed": 2})"),
                          "its JSON has the key 'seed' twice"));
  REQUIRE(tests::contains(problem(R"([{"a:": "\"::", "b": [{"x": 1, "\u0078": 2}]}])"),
                          "its JSON has the key 'x' twice"));
  REQUIRE(problem(R"([{"a": ":", "b:": {"a": "\"a\": 1"}}, {"a": []}])").empty());
  REQUIRE(read_json_text(R"({"a" 1, "a": 2})").is_discarded());
  const tests::TemporaryFolder folder;
  const std::string of_file =
      tests::error_of([&] { read_json_file(folder.write("config.json", R"({"a":1,"a":1})")); });
  REQUIRE(tests::contains(of_file, "config.json' cannot be read: its JSON has the key 'a' twice"));
}

TEST_CASE("a JSON file is read up to a length and a depth", "[json][hostile]") {
  const tests::TemporaryFolder folder;
  REQUIRE(read_json_file(folder.write("a", "{\"a\": [1]}"))["a"][0] == 1);
  REQUIRE(read_json_file(folder.write("a", "[1")).is_discarded());
  const auto fault_of = [](const std::filesystem::path& file) {
    return tests::error_of([&] { read_json_file(file); });
  };
  REQUIRE(tests::contains(fault_of(folder.write("a", std::string(1'000'000, '['))),
                          "nested more than 100 deep"));
  REQUIRE(read_json_file(folder.write("a", "\"" + std::string(1000, '[') + "\"")).is_string());
  std::filesystem::resize_file(folder / "a", uintmax_t{1} << 40);  // sparse
  REQUIRE(tests::contains(fault_of(folder / "a"), "is too large"));
}

}  // namespace
}  // namespace forge::tests
