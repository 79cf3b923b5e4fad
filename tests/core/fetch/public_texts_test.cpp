#include "core/fetch/public_texts.h"

#include "core/base/fs.h"
#include "core/fetch/sha256.h"
#include "tests/core/fetch/http_server.h"
#include "tests/core/fetch/zipped.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::fetch {
namespace {

RemoteFile known(const tests::TemporaryFolder& folder, const std::string& content) {
  return {"https://example.org/elsewhere/texts.zip",
          static_cast<int64_t>(content.size()),
          sha256_of(folder.write("original", content))};
}

TEST_CASE("every public text has files that can be checked") {
  for (const PublicText& text : public_texts()) {
    REQUIRE(&find_public_text(text.name) == &text);
    for (const RemoteFile& file : text.files) {
      REQUIRE(file.url.substr(0, 8) == "https://");
      REQUIRE(file.bytes > 0);
      REQUIRE(file.sha256.size() == 64);
    }
  }
  REQUIRE(tests::contains(tests::error_of([] { find_public_text("tinystory"); }),
                          "did you mean 'tinystories'?"));
}

TEST_CASE("a text is got from a mirror by its name and out of its archive") {
  tests::TemporaryFolder folder;
  const std::string archive = tests::zipped({{"raw/a", "first"}, {"raw/b", "second"}});
  tests::HttpServer server({{"texts.zip", archive}});
  const PublicText text = {
      "texts", "", {known(folder, archive)}, {{"raw/a", "a.txt"}, {"raw/b", "b.txt"}}};
  const auto get = [&](const std::string& mirror) {
    return get_public_text(text, folder / "to", mirror, {});
  };
  const auto files = get(server.url(""));
  REQUIRE(files == std::vector<fs::path>{folder / "to" / "a.txt", folder / "to" / "b.txt"});
  REQUIRE(read_file(files[0]) == "first");
  REQUIRE(read_file(files[1]) == "second");
  REQUIRE_FALSE(fs::exists(folder / "to" / "texts.zip"));
  REQUIRE(get("http://127.0.0.1:1") == files);  // all is there: nobody is asked
  REQUIRE(server.requests().size() == 1);
}

}  // namespace
}  // namespace forge::fetch
