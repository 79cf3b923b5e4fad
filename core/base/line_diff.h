#pragma once

#include <string>
#include <vector>

namespace forge {

/// A line that only one of two texts has.
struct LineChange {
  bool is_left = false;  ///< else the right one has it
  size_t number = 0;     ///< in its text, from 1
  std::string text;
};

/// What turns one text into the other, with as few lines as possible, in the order of the texts:
/// those of the left before those of the right. Where more than 4,000 lines lie between the first
/// and the last that differ, all of those are told, whatever both texts have in common.
std::vector<LineChange> line_changes(const std::string& left, const std::string& right);

}  // namespace forge
