#include "core/report/formulas.h"

namespace forge::report {
namespace {

std::optional<FigureSample> measured_speed(const AblationRow& row) {
  if (!row.speed || !row.speed->otherwise.empty()) return std::nullopt;
  return FigureSample{row.spec.config, {{0, row.speed->record.tokens_per_second}}};
}

std::optional<FigureSample> sample_of(const AblationRow& row, const std::string& figure) {
  FigureSample sample{row.spec.config, {}};
  const std::vector<double> values = values_of(row, figure);
  for (size_t i = 0; i < values.size(); ++i) sample.values.push_back({row.runs[i].seed, values[i]});
  if (sample.values.empty()) return std::nullopt;
  return sample;
}

}  // namespace

Samples samples_for(const Ablation& ablation, const AblationRow& row) {
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.division);
  return [&ablation, &row, baseline](const Name& name) -> std::optional<FigureSample> {
    const AblationRow* named = &row;
    if (name.row == Name::Row::baseline) named = baseline;
    if (name.row == Name::Row::of_config) named = find_row(ablation, name.config, row.division);
    if (!named) return std::nullopt;
    if (named != &row && !(named->is_controlled() && row.is_controlled())) return std::nullopt;
    if (name.figure == tokens_per_second_name &&
        ablation.table.tokens_per_second == SpeedSource::benchmark)
      return measured_speed(*named);
    const bool otherwise = is_of_the_device(name.figure) && named->completed() && baseline &&
                           baseline->completed() && !computed_alike(*named, *baseline);
    return otherwise ? std::nullopt : sample_of(*named, name.figure);
  };
}

}  // namespace forge::report
