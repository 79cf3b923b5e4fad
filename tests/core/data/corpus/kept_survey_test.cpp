#include "core/data/corpus/kept_survey.h"

#include "core/base/fs.h"
#include "core/data/corpus/corpus.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

namespace fs = std::filesystem;

config::DataConfig text_config(const fs::path& path) {
  config::DataConfig config;
  config.source = "text";
  config.path = path.string();
  config.held_out_fraction = 0.25;
  return config;
}

Survey some_survey() {
  Survey survey;
  survey.training_sizes = {13};
  survey.evaluation_sizes = {13};
  survey.training_end = {0, 9};
  survey.evaluation_begin = {0, 9};
  survey.training_documents = 6;
  survey.fingerprint = "abc";
  return survey;
}

double later() { return unix_time() + 10; }

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

std::string all_of(NextDocument next) {
  std::string all, document;
  while (next(document)) all += document;
  return all;
}

TEST_CASE("a kept survey is found for the same files and the same division") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "a.txt", surveys = folder / "surveys";
  write_file_atomic(text, "one two three");
  config::DataConfig config = text_config(text);
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  KeptSurvey(surveys, config, later()).keep(some_survey());
  const std::optional<Survey> found = KeptSurvey(surveys, config, later()).find();
  REQUIRE(found);
  REQUIRE(found->training_sizes == some_survey().training_sizes);
  REQUIRE(found->evaluation_sizes == some_survey().evaluation_sizes);
  REQUIRE(found->training_end == some_survey().training_end);
  REQUIRE(found->evaluation_begin == some_survey().evaluation_begin);
  REQUIRE(found->training_documents == 6);
  REQUIRE(found->fingerprint == "abc");

  config.held_out_fraction = 0.5;
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  config.held_out_fraction = 0.25;
  config.training_fraction = 0.5;
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  config.training_fraction = 1;
  config.documents = config::DocumentKind::separator;
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  config.documents = config::DocumentKind::file;
  config.evaluation_path = text.string();
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  config.evaluation_path.clear();
  REQUIRE(KeptSurvey(surveys, config, later()).find());
}

TEST_CASE("a changed, replaced or new file needs another survey") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "text", surveys = folder / "surveys";
  make_directories(text);
  write_file_atomic(text / "a.txt", "one two three");
  const config::DataConfig config = text_config(text);
  KeptSurvey(surveys, config, later()).keep(some_survey());
  REQUIRE(KeptSurvey(surveys, config, later()).find());
  write_file_atomic(text / "a.txt", "one two thrEE");
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
  KeptSurvey(surveys, config, later()).keep(some_survey());
  REQUIRE(KeptSurvey(surveys, config, later()).find());
  write_file_atomic(text / "b.txt", "four");
  REQUIRE_FALSE(KeptSurvey(surveys, config, later()).find());
}

TEST_CASE("a survey is not kept of files that change meanwhile or have just been written") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "a.txt", surveys = folder / "surveys";
  write_file_atomic(text, "one two three");
  const config::DataConfig config = text_config(text);
  KeptSurvey(surveys, config).keep(some_survey());
  REQUIRE(files_in(surveys).empty());
  const KeptSurvey early(surveys, config, later());
  write_file_atomic(text, "one two four");
  early.keep(some_survey());
  REQUIRE(files_in(surveys).empty());
  KeptSurvey("", config, later()).keep(some_survey());
}

TEST_CASE("a corpus of a kept survey is the corpus that was read") {
  const tests::TemporaryFolder folder;
  const fs::path surveys = folder / "surveys";
  // A file that was there long before this test.
  const config::DataConfig config =
      text_config(tests::tests_dir() / "core" / "data" / "corpus" / "corpus_test.cpp");
  const Corpus read(config);
  REQUIRE(Corpus(config, {}, surveys).fingerprint() == read.fingerprint());
  REQUIRE(files_in(surveys).size() == 1);
  const fs::path kept = files_in(surveys)[0];
  std::string json = read_file(kept);
  const size_t place = json.find(read.fingerprint());
  REQUIRE(place != std::string::npos);
  write_file_atomic(kept, json.replace(place, read.fingerprint().size(), "kept"));

  const Corpus found(config, {}, surveys);
  REQUIRE(found.fingerprint() == "kept");
  REQUIRE(found.training().begin == read.training().begin);
  REQUIRE(found.training().end == read.training().end);
  REQUIRE(found.evaluation().begin == read.evaluation().begin);
  REQUIRE(found.evaluation().end == read.evaluation().end);
  REQUIRE(found.training().bytes() == read.training().bytes());
  REQUIRE(found.training_documents() == read.training_documents());
  REQUIRE(all_of(found.sample()) == all_of(read.sample()));

  const std::string sizes = "\"training_sizes\":[";
  const size_t of_sizes = json.find(sizes) + sizes.size();
  for (const std::string& damaged : {std::string("{\"training_sizes\": 3"),
                                     std::string(json).insert(of_sizes, "5,"),
                                     std::string(json).insert(of_sizes, "-")}) {
    write_file_atomic(kept, damaged);
    REQUIRE(Corpus(config, {}, surveys).fingerprint() == read.fingerprint());
  }
}

}  // namespace
}  // namespace forge::data
