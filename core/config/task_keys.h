#pragma once

#include <string>
#include <vector>

#include "core/config/experiment.h"

/// Which keys of data.task each synthetic task has.
namespace forge::config {

/// Names of the tasks.
const std::vector<std::string>& task_names();

/// A key of data.task that is a size, such as max_nodes.
struct SizeKey {
  const char* key;
  int TaskConfig::*field;
};
const std::vector<SizeKey>& size_keys();

/// A size that a task has.
struct TaskSize : SizeKey {
  int least;  ///< 0: it may be left out
  const char* example;
};

/// The sizes of a task; empty where there is no such task.
std::vector<TaskSize> sizes_of(const std::string& task);

/// Ids of a task that has own ids, whose sizes are given: dense, from 0 on. Of lano those of three
/// terminals, which every published grammar has and every drawn one.
int task_vocab_size(const TaskConfig& task);

}  // namespace forge::config
