#include "backends/libtorch/model/rotary_tables.h"

#include <c10/core/InferenceMode.h>

#include "backends/libtorch/model/inference.h"

namespace forge::libtorch {

ops::RotaryTable RotaryTables::of_length(const RotaryOptions& rotary, int64_t length) {
  for (const Entry& entry : tables_) {
    if (entry.rotary == rotary && entry.table.cos.size(0) >= length) return entry.table;
  }
  // Training may use the table later, which it could not if it were a tensor of inference mode.
  const c10::InferenceMode no_inference_mode(false);
  const at::NoGradGuard no_grad;
  tables_.push_back(
      {rotary,
       ops::rotary_table(length, rotary.rope_dim, rotary.theta, rotary.interleaved, options_)});
  return tables_.back().table;
}

ops::RotaryTable RotaryTables::of_step(const RotaryOptions& rotary, const GenerationStep& step) {
  if (!step_positions_.is_same(step.positions())) step_tables_.clear();
  step_positions_ = step.positions();
  for (const Entry& entry : step_tables_) {
    if (entry.rotary == rotary) return entry.table;
  }
  const ops::RotaryTable whole = of_length(rotary, step.capacity());
  const at::Tensor positions = step_positions_.flatten();
  step_tables_.push_back({rotary,
                          {whole.cos.index_select(0, positions),
                           whole.sin.index_select(0, positions),
                           whole.interleaved}});
  return step_tables_.back().table;
}

}  // namespace forge::libtorch
