#pragma once

#include <string>

namespace forge::tests {

std::string gzipped(const std::string& content);
std::string zstandard(const std::string& content);

}  // namespace forge::tests
