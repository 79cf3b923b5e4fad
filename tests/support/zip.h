#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forge::tests {

/// A zip archive of these names and contents, deflated.
std::string zipped(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace forge::tests
