#include "core/project/listing.h"

#include "core/base/parallel.h"

namespace forge::project {
namespace {

ListedConfig list_config(const Project& project,
                         const Config& config,
                         const templating::Surroundings& surroundings) {
  ListedConfig listed;
  try {
    listed.summary = summarize(project, config, surroundings);
  } catch (const Error& error) {
    listed.problem = error;
  }
  if (listed.summary.name.empty()) listed.summary.name = config.name;
  return listed;
}

}  // namespace

std::vector<ListedProject> list_configs(std::vector<Project> projects,
                                        const templating::Surroundings& surroundings) {
  struct Task {
    size_t project, config;
  };
  std::vector<ListedProject> listing;
  std::vector<Task> tasks;
  for (Project& project : projects) {
    for (size_t i = 0; i < project.configs.size(); ++i) tasks.push_back({listing.size(), i});
    std::vector<ListedConfig> configs(project.configs.size());
    listing.push_back({std::move(project), std::move(configs)});
  }
  parallel_for(tasks.size(), [&](size_t i) {
    ListedProject& listed = listing[tasks[i].project];
    const Config& config = listed.project.configs[tasks[i].config];
    listed.configs[tasks[i].config] = list_config(listed.project, config, surroundings);
  });
  return listing;
}

}  // namespace forge::project
