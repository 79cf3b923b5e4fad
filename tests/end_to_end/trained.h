#pragma once

#include <string>
#include <vector>

#include "core/weights/model_files.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {

/// forge with one trained tiny run of a config.
class Trained {
 public:
  explicit Trained(const std::string& config) {
    const Outcome trained = forge.call(tiny({"run", config}, 4));
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    run = forge.only_run().filename().string();
  }
  nlohmann::json call(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Outcome outcome = forge.call(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return nlohmann::json::parse(outcome.out);
  }
  std::string path(const std::string& name) const { return (forge.folder() / name).string(); }
  std::string hash(const std::filesystem::path& folder) const {
    return weights::content_hash(weights::ModelFiles(folder).tensors());
  }
  Program forge;
  std::string run;
};

}  // namespace forge::tests
