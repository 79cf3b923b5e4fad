#include "core/upkeep/change_remarks.h"

#include "core/queue/queue.h"

namespace forge::upkeep {

run::Remarks change_remarks(const run::RunFolder& folder,
                            const std::function<void(run::Remarks&)>& change) {
  const queue::Queue one_at_a_time(folder.path().parent_path());
  run::Remarks remarks = run::read_remarks(folder);
  change(remarks);
  run::write_remarks(folder, remarks);
  return run::read_remarks(folder);
}

}  // namespace forge::upkeep
