#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace forge {

/// The last whole line of a file without its newline, read from the end; "" where there is none. Of
/// a line of more than 4 MiB, which no log has, it is the last part: no more of a file is looked
/// at.
std::string last_line(const std::filesystem::path& file);

/// The last whole lines, at most `count`, the newest last. A line of more than 4 MiB is cut as
/// above, and those before it are not looked for.
std::vector<std::string> last_whole_lines(const std::filesystem::path& file, size_t count);

/// The last lines of a file that begin at byte `from` or later: at most `count`, each cut to
/// `longest` bytes. Empty where there is no file.
std::vector<std::string> last_lines(const std::filesystem::path& file,
                                    int64_t from,
                                    size_t count,
                                    size_t longest);

}  // namespace forge
