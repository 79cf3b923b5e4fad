#pragma once

#include "core/data/tasks/task.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {

/// Depo (Part 4.1, section 2): n names form one random cycle, told as its n steps in random order,
///
///     <bos> a b  c a  b c  …  <hop k> name <answer> name'  <hop k> …
///
/// then min(n, max_queries) questions about distinct names: which name lies k steps on. k is
/// uniform in 1 … K and may lead around the cycle. The answer marker and the answer carry loss. For
/// training n follows SizeDistribution; for evaluation n = N and k is a power of two up to K, or K,
/// or 24 where K = 32.
///
/// Ids: letters 1 … 2V, hop markers 1 … K, answer marker, bos.
class Depo : public Task {
 public:
  explicit Depo(const DepoConfig& config);

  std::string name() const override { return "depo"; }
  int32_t vocab_size() const override { return bos() + 1; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override;
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// token_accuracy and answer_accuracy over the names of answers, in all and by hops
  /// ("answer_accuracy.hop_8"). The paper reports K and K/2 hops.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  const DepoConfig& config() const { return config_; }
  int32_t hop(int k) const { return names_.end_of_letters() + k - 1; }
  int32_t answer() const { return hop(config_.max_hops) + 1; }
  int32_t bos() const { return answer() + 1; }

 private:
  DepoConfig config_;
  NameSet names_;
  SizeDistribution sizes_;
  std::vector<int> evaluated_hops_;
};

}  // namespace forge::data::tasks
