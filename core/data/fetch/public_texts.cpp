#include "core/data/fetch/public_texts.h"

#include <algorithm>

#include "core/base/archive.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

std::string name_in(const std::string& url) { return url.substr(url.rfind('/') + 1); }

}  // namespace

const std::vector<PublicText>& public_texts() {
  static const std::string stories =
      "https://huggingface.co/datasets/roneneldan/TinyStories/resolve/main/";
  static const std::vector<PublicText> texts = {
      {"tinystories",
       "TinyStories (Eldan and Li 2023): 2,119,719 short stories, and 21,990 for validation",
       {{stories + "TinyStories-train.txt",
         1924281556,
         "c5cf5e22ff13614e830afbe61a99fbcbe8bcb7dd72252b989fa1117a368d401f"},
        {stories + "TinyStories-valid.txt",
         19447282,
         "94e431816c4cce81ff71e4408ff8d3bda9a42e8d2663986697c3954288cb38b4"}},
       {}},
      {"wikitext-103",
       "WikiText-103 raw (Merity et al. 2016): good and featured articles of Wikipedia",
       {{"https://huggingface.co/datasets/mattdangerw/wikitext-103-raw/resolve/main/"
         "wikitext-103-raw-v1.zip",
         191984949,
         "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"}},
       {{"wikitext-103-raw/wiki.train.raw", "wiki.train.txt"},
        {"wikitext-103-raw/wiki.valid.raw", "wiki.valid.txt"},
        {"wikitext-103-raw/wiki.test.raw", "wiki.test.txt"}}}};
  return texts;
}

const PublicText& find_public_text(const std::string& name) {
  for (const PublicText& text : public_texts()) {
    if (text.name == name) return text;
  }
  const std::vector<std::string> names = texts_of(public_texts(), &PublicText::name);
  throw Error("there is no public text '" + name + "' that forge knows",
              did_you_mean(name, names, "there are " + join(names, ", ")));
}

std::vector<fs::path> get_public_text(const PublicText& text,
                                      const fs::path& folder,
                                      const std::string& mirror,
                                      const Progress& progress) {
  std::vector<fs::path> kept;
  for (const auto& [member, name] : text.members) kept.push_back(folder / name);
  if (!kept.empty() && std::all_of(kept.begin(), kept.end(), path_exists)) return kept;
  std::vector<fs::path> files;
  for (RemoteFile file : text.files) {
    const std::string name = name_in(file.url);
    if (!mirror.empty()) file.url = mirror + (mirror.back() == '/' ? "" : "/") + name;
    const Progress named = [&](double fraction, const std::string& phase) {
      if (progress) progress(fraction, phase + " " + name);
    };
    download(file, folder / name, named);
    files.push_back(folder / name);
  }
  if (kept.empty()) return files;
  for (const auto& [member, name] : text.members)
    extract_zip_member(files.at(0), member, folder / name);
  std::error_code ignored;
  fs::remove(files.at(0), ignored);
  return kept;
}

}  // namespace forge::data
