#include "core/data/fetch/download.h"

#include <sys/stat.h>

#include "core/base/files.h"
#include "core/data/fetch/public_texts.h"
#include "tests/core/data/fetch/test_server.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/zip.h"

namespace forge::data {
namespace {

using tests::contains;

std::string some_text(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) text += "line " + std::to_string(i) + "\n";
  return text.substr(0, size);
}

/// A server of one file, the file as it is known, and a place for it.
struct Setup {
  explicit Setup(size_t size) : text(some_text(size)), server({{"a.txt", text}}) {
    file.url = server.url("a.txt");
    file.bytes = static_cast<int64_t>(text.size());
    file.sha256 = sha256_of(folder.write("original", text));
  }
  std::string error() const {
    return tests::error_of([&] { download(file, target, {}); });
  }

  tests::TemporaryFolder folder;
  std::string text;
  tests::HttpServer server;
  RemoteFile file;
  std::filesystem::path target = folder / "to" / "a.txt";
  std::filesystem::path partial = target.string() + ".partial";
};

TEST_CASE("SHA-256 is the one of its standard") {
  tests::TemporaryFolder folder;
  REQUIRE(sha256_of(folder.write("abc", "abc")) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a file is got and checked and not got again") {
  const Setup setup(3000000);
  std::vector<std::string> phases;
  download(setup.file, setup.target, [&](double fraction, const std::string& phase) {
    REQUIRE(fraction >= 0);
    REQUIRE(fraction <= 1);
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
  });
  REQUIRE(read_file(setup.target) == setup.text);
  REQUIRE(phases == std::vector<std::string>{"downloading", "verifying SHA-256"});
  REQUIRE_FALSE(fs::exists(setup.partial));
  REQUIRE(setup.error() == "");
  REQUIRE(setup.server.requests().size() == 1);
}

TEST_CASE("a connection that breaks off is taken up where it ended") {
  Setup setup(1000000);
  setup.server.break_off_after(300000);
  REQUIRE(setup.error() == "");
  REQUIRE(read_file(setup.target) == setup.text);
  REQUIRE(setup.server.requests() == std::vector<size_t>{0, 300000, 600000, 900000});
}

TEST_CASE("what an earlier call left is gone on with") {
  const Setup setup(1000000);
  make_directories(setup.target.parent_path());
  write_file_atomic(setup.partial, setup.text.substr(0, 777777));
  REQUIRE(setup.error() == "");
  REQUIRE(setup.server.requests() == std::vector<size_t>{777777});
  REQUIRE(read_file(setup.target) == setup.text);
}

TEST_CASE("a server that knows no ranges sends all of it again") {
  Setup setup(1000000);
  setup.server.ignore_ranges();
  make_directories(setup.target.parent_path());
  write_file_atomic(setup.partial, setup.text.substr(0, 1000));
  REQUIRE(setup.error() == "");
  REQUIRE(read_file(setup.target) == setup.text);
}

TEST_CASE("what is not the file that is known is refused and not kept") {
  Setup setup(100000);
  setup.file.sha256[0] = setup.file.sha256[0] == '0' ? '1' : '0';
  REQUIRE(contains(setup.error(), "its SHA-256 is not"));
  REQUIRE_FALSE(fs::exists(setup.target));
  REQUIRE_FALSE(fs::exists(setup.partial));
  setup.file.bytes -= 10;
  REQUIRE(contains(setup.error(), "sends more than the 99,990 bytes"));
  make_directories(setup.target.parent_path());
  write_file_atomic(setup.target, "something else");
  REQUIRE(contains(setup.error(), "it has 14 bytes, not 99,990"));
}

TEST_CASE("what is got is written to no file of another name", "[hostile]") {
  const tests::TemporaryFolder folder;
  const fs::path target = folder / "text.txt", partial = folder / "text.txt.partial";
  const fs::path other = folder.write("thesis.db", std::string(1000, 'x'));
  const RemoteFile file = {"http://127.0.0.1:1/text.txt", GENERATE(10, 2000), std::string(64, '0')};
  const std::string kind = GENERATE("link", "second name", "pipe");
  CAPTURE(kind, file.bytes);
  if (kind == "link") fs::create_symlink(other, partial);
  if (kind == "second name") fs::create_hard_link(other, partial);
  if (kind == "pipe") REQUIRE(::mkfifo(partial.c_str(), 0600) == 0);
  const std::string said = tests::error_of([&] { download(file, target, {}); });
  CHECK(said.find("text.txt.partial") != std::string::npos);
  CHECK(read_file(other) == std::string(1000, 'x'));
  CHECK_FALSE(path_exists(target));
}

TEST_CASE("two processes do not write to one file that is got", "[hostile]") {
  const tests::TemporaryFolder folder;
  const FileLock first = FileLock::acquire(folder / "text.txt.partial");
  const RemoteFile file = {"http://127.0.0.1:1/text.txt", 10, std::string(64, '0')};
  const std::string said = tests::error_of([&] { download(file, folder / "text.txt", {}); });
  CHECK(said.find("another process is getting") != std::string::npos);
}

TEST_CASE("without the server it is said which file to put where") {
  Setup setup(1000);
  setup.file.url = setup.server.url("missing.txt");
  const std::string missing = setup.error();
  INFO(missing);
  REQUIRE(contains(missing, "the server answers 404"));
  // Port 1 of this machine: nobody listens there.
  setup.file.url = "http://127.0.0.1:1/a.txt";
  const std::string error = setup.error();
  INFO(error);
  REQUIRE(contains(error, "cannot get http://127.0.0.1:1/a.txt"));
  REQUIRE(contains(error, "put it at " + setup.target.string()));
  REQUIRE(contains(error, "1,000 bytes, SHA-256 " + setup.file.sha256));
  setup.file.url = "file:///etc/hostname";
  REQUIRE(contains(setup.error(), "cannot get"));
}

TEST_CASE("a download that is stopped keeps what is there") {
  const Setup setup(3000000);
  struct Stopped {};
  const data::Progress stop = [](double fraction, const std::string&) {
    if (fraction > 0.3) throw Stopped();
  };
  REQUIRE_THROWS_AS(download(setup.file, setup.target, stop), Stopped);
  REQUIRE(fs::file_size(setup.partial) > 900000);
  REQUIRE(setup.error() == "");
  REQUIRE(read_file(setup.target) == setup.text);
}

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
}  // namespace forge::data
