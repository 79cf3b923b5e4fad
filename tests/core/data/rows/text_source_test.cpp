#include <stdexcept>

#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/data/corpus/corpus.h"
#include "core/data/corpus/document_reader.h"
#include "core/data/rows/text_source.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

std::vector<int32_t> number(int64_t i) { return {static_cast<int32_t>(i)}; }

/// Results of `make` for 0, 1, … below `count`, or without an end where that is negative.
void ordered_parallel(int64_t count,
                      const std::function<std::vector<int32_t>(const int64_t&)>& make,
                      const std::function<bool(const std::vector<int32_t>&)>& take) {
  int64_t started = 0;
  const std::function<std::optional<int64_t>()> next = [&]() -> std::optional<int64_t> {
    if (count >= 0 && started >= count) return std::nullopt;
    return started++;
  };
  ordered_pipeline(next, make, take);
}

TEST_CASE("results are taken in order") {
  std::vector<int32_t> taken;
  ordered_parallel(50, number, [&](const std::vector<int32_t>& result) {
    taken.push_back(result[0]);
    return true;
  });
  REQUIRE(taken.size() == 50);
  for (int i = 0; i < 50; ++i) REQUIRE(taken[i] == i);
}

TEST_CASE("taking may end it and nothing is made of nothing") {
  int taken = 0;
  ordered_parallel(-1, number, [&](const std::vector<int32_t>&) { return ++taken < 7; });
  REQUIRE(taken == 7);
  ordered_parallel(0, number, [&](const std::vector<int32_t>&) { return ++taken > 0; });
  REQUIRE(taken == 7);
}

TEST_CASE("what making or taking throws comes out") {
  const auto take = [](const std::vector<int32_t>&) { return true; };
  const auto fail_at_3 = [](int64_t i) -> std::vector<int32_t> {
    if (i == 3) throw std::runtime_error("failed");
    return number(i);
  };
  REQUIRE_THROWS_WITH(ordered_parallel(10, fail_at_3, take), "failed");
  const auto refuse = [](const std::vector<int32_t>&) -> bool { throw std::runtime_error("stop"); };
  REQUIRE_THROWS_WITH(ordered_parallel(-1, number, refuse), "stop");
}

/// What a user's Ctrl-C does to a piece of work.
struct Interrupted {};

std::string stories(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += toy_story(3, Split::training, static_cast<uint64_t>(i)) + "\n<|endoftext|>\n";
  }
  return text;
}

TEST_CASE("text becomes the tokens of its documents, long ones in parts") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  std::string text;
  while (text.size() < 3 * chunk_bytes) text += stories(100);
  const auto path = folder.write("a.txt", text);
  TokenFileWriter writer(folder / "a.tokens", tokenizer.vocab_size(), tokenizer.fingerprint());
  write_text(all_text(path, {}), tokenizer, {}, writer);
  writer.finish();
  const TokenFile file(folder / "a.tokens");
  std::vector<int32_t> ids(static_cast<size_t>(file.size()));
  file.read(0, file.size(), ids.data());
  REQUIRE(ids == tokenizer.encode_document(text));
  REQUIRE(file.documents() == 1);
}

TEST_CASE("tokens are the same bytes whether their writing was broken off or not") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  std::string text;
  while (text.size() < 6 * chunk_bytes) text += stories(200);
  const auto path = folder.write("a.txt", text);
  for (const DocumentRule& rule :
       {DocumentRule{config::DocumentKind::separator, "<|endoftext|>", ""}, DocumentRule{}}) {
    const auto write = [&](const std::string& name, const Progress& progress) {
      TokenFileWriter writer(
          folder / name, tokenizer.vocab_size(), tokenizer.fingerprint(), "test");
      write_text(all_text(path, rule), tokenizer, progress, writer, 1);
      writer.finish();
      return read_file(folder / name);
    };
    const std::string at_once = write("a.tokens", {});
    int told = 0;
    int interruptions = 0;
    const Progress interrupt = [&](double, const std::string&) {
      if (++told % 3 == 0) throw Interrupted();
    };
    std::string resumed;
    while (resumed.empty()) {
      try {
        resumed = write("b.tokens", interrupt);
      } catch (const Interrupted&) {
        ++interruptions;
        REQUIRE(interruptions < 20);
      }
    }
    REQUIRE(interruptions >= 2);
    REQUIRE(resumed == at_once);
  }
}

TEST_CASE("generated stories go on where their writing was broken off") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  const auto story = [](uint64_t index) { return toy_story(5, Split::training, index); };
  const auto write = [&](const std::string& name, TokenAmount amount, const Progress& progress) {
    TokenFileWriter writer(folder / name, tokenizer.vocab_size(), tokenizer.fingerprint(), "test");
    write_generated(story, amount, tokenizer, progress, writer, 1);
    writer.finish();
    return read_file(folder / name);
  };
  const TokenAmount amount = {0, 1000};
  const std::string at_once = write("a.tokens", amount, {});
  const Progress interrupt = [](double fraction, const std::string&) {
    if (fraction > 0.5) throw Interrupted();
  };
  REQUIRE_THROWS_AS(write("b.tokens", amount, interrupt), Interrupted);
  REQUIRE(write("b.tokens", amount, {}) == at_once);
  REQUIRE(TokenFile(folder / "a.tokens").documents() == 1024);
}

}  // namespace
}  // namespace forge::data
