#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

constexpr size_t max_rooms = 15;

fs::path core_dir() { return tests_dir().parent_path() / "core"; }

/// The rooms of core/rooms.txt in its order: the first word of each line.
std::vector<std::string> listed_rooms() {
  std::vector<std::string> rooms;
  std::istringstream lines(read_file(core_dir() / "rooms.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) rooms.push_back(line.substr(0, line.find(' ')));
  }
  return rooms;
}

/// The room of `#include "core/ROOM/…"`, or "" for another line.
std::string included_room(const std::string& line) {
  const std::string prefix = "#include \"core/";
  if (!starts_with(line, prefix)) return "";
  const size_t end = line.find('/', prefix.size());
  return end == std::string::npos ? "" : line.substr(prefix.size(), end - prefix.size());
}

/// "FILE:LINE: …" for each include of a room that `order` has behind the file's own.
std::vector<std::string> backward_includes(const fs::path& file,
                                           const std::string& room,
                                           const std::map<std::string, size_t>& order) {
  std::vector<std::string> problems;
  std::ifstream text(file);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const std::string included = included_room(line);
    if (included.empty()) continue;
    const std::string place = file.lexically_relative(core_dir().parent_path()).string() + ":" +
                              std::to_string(number) + ": ";
    const auto found = order.find(included);
    if (found == order.end()) {
      problems.push_back(place + "'" + included + "' is not in core/rooms.txt");
    } else if (found->second > order.at(room)) {
      problems.push_back(place + room + " comes before " + included + " in core/rooms.txt");
    }
  }
  return problems;
}

TEST_CASE("core/rooms.txt lists the folders of core, at most fifteen") {
  const std::vector<std::string> rooms = listed_rooms();
  CHECK(rooms.size() <= max_rooms);
  for (const std::string& room : rooms) {
    INFO("core/rooms.txt lists '" + room + "'");
    CHECK(fs::is_directory(core_dir() / room));
    CHECK(std::count(rooms.begin(), rooms.end(), room) == 1);
  }
  for (const auto& entry : fs::directory_iterator(core_dir())) {
    if (!entry.is_directory()) continue;
    INFO("core has the folder '" + entry.path().filename().string() + "'");
    CHECK(std::count(rooms.begin(), rooms.end(), entry.path().filename().string()) == 1);
  }
}

TEST_CASE("a room of core includes itself and earlier rooms only") {
  const std::vector<std::string> rooms = listed_rooms();
  std::map<std::string, size_t> order;
  for (const std::string& room : rooms) order.emplace(room, order.size());
  size_t files = 0;
  for (const std::string& room : rooms) {
    for (const auto& entry : fs::recursive_directory_iterator(core_dir() / room)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      ++files;
      for (const std::string& problem : backward_includes(entry.path(), room, order)) {
        FAIL_CHECK(problem);
      }
    }
  }
  CHECK(files > 100);
}

TEST_CASE("an include of a later or unknown room is reported with file and line") {
  const TemporaryFolder folder;
  folder.write("a.cpp", "#include <map>\n#include \"core/late/x.h\"\n#include \"core/none/y.h\"\n");
  const auto problems =
      backward_includes(folder.path() / "a.cpp", "early", {{"early", 0}, {"late", 1}});
  REQUIRE(problems.size() == 2);
  CHECK(contains(problems[0], "a.cpp:2: early comes before late in core/rooms.txt"));
  CHECK(contains(problems[1], "a.cpp:3: 'none' is not in core/rooms.txt"));
}

}  // namespace
}  // namespace forge::tests
