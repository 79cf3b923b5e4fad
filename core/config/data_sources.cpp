#include "core/config/data_sources.h"

namespace forge::config {

DataConfig data_of_source(const DataConfig& mixture, const SourceConfig& source) {
  DataConfig data = mixture;
  data.sources.clear();
  data.source = source.source;
  data.path = source.path;
  data.documents = source.documents;
  data.separator = source.separator;
  data.field = source.field;
  data.training_fraction = source.training_fraction;
  data.evaluation_path = source.evaluation_path;
  data.held_out_fraction = source.held_out_fraction;
  return data;
}

}  // namespace forge::config
