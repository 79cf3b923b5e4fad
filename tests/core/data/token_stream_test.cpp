#include "core/data/token_stream.h"

#include "core/base/fs.h"
#include "core/data/corpus/chunk_reader.h"
#include "core/data/corpus/corpus.h"
#include "core/data/token_file.h"
#include "core/data/toy_stories.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

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
