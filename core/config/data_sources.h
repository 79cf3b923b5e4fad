#pragma once

#include "core/config/experiment.h"

namespace forge::config {

/// The section `data` of an experiment that has one source of a mixture and nothing else.
DataConfig data_of_source(const DataConfig& mixture, const SourceConfig& source);

}  // namespace forge::config
