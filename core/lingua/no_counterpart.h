#pragma once

#include <string>
#include <vector>

namespace forge::lingua {

/// A key of lingua's that no key of forge's corresponds to.
struct NoCounterpart {
  std::string path;  ///< "distributed.compile", of a key or of a whole section
  std::string reason;
};

const std::vector<NoCounterpart>& no_counterparts();

/// The entry for a key that is there with this path, or null.
const NoCounterpart* find_no_counterpart(const std::string& path);

}  // namespace forge::lingua
