#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/report/ablation.h"
#include "core/report/page/page.h"

namespace forge::report::page {

/// The page of a project: its tables as they are, the curves and configs of all its runs below
/// `runs_dir` that are not archived, as the store has them. A curve keeps at most a thousand
/// points, fewer where there are more than a hundred runs.
Page collect_page(const std::string& project,
                  const std::string& title,
                  const std::vector<Ablation>& tables,
                  const std::filesystem::path& runs_dir);

}  // namespace forge::report::page
