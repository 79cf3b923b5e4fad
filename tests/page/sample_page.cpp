// Writes a page of made-up runs, for a browser to look at:
//
//     forge_sample_page FILE RUNS POINTS [NAME]
//
// Exit code 77: forge was built without uPlot.

#include <iostream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/page_maker.h"

int main(int count, char** words) {
  if (count < 4) return 2;
  if (forge::page::embedded_assets().plot_script.empty()) return 77;
  try {
    const std::string name = count > 4 ? words[4] : "canon";
    const auto page = forge::tests::make_page(std::stoul(words[2]), std::stoul(words[3]), name);
    forge::write_file_atomic(words[1], forge::page::to_html(page));
  } catch (const forge::Error& problem) {
    std::cerr << problem.message() << "\n";
    return 1;
  }
  return 0;
}
