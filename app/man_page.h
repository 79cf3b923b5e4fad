#pragma once

#include <string>

namespace CLI {
class App;
}

namespace forge::app {

/// forge(1) in man's language, from the very declarations that --help prints.
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace forge::app
