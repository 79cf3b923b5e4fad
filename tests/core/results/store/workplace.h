#pragma once

#include <filesystem>
#include <string>

#include "core/base/files.h"
#include "core/results/store/result_store.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::store {

using namespace tests;

/// A runs folder and a store beside it.
struct Workplace {
  TemporaryFolder folder;
  std::filesystem::path runs = folder / "runs";
  std::filesystem::path database = folder / "forge.sqlite";
  ResultStore store{database};

  Workplace() { make_directories(runs); }
};

/// A run whose id is its config and the day of the month.
inline MadeRun made(const std::string& config,
                    const std::string& created = "2026-11-20T10:00:00.000Z") {
  MadeRun run;
  run.config = config;
  run.id = config + "-" + created.substr(8, 2);
  run.created = created;
  return run;
}

/// A run with the id that forge gives it: its config and key.
inline MadeRun made_as_forge(const std::string& config) {
  MadeRun run = made(config);
  run.id.clear();
  return run;
}

}  // namespace forge::store
