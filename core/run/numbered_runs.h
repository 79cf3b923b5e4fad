#pragma once

#include <string>
#include <vector>

#include "core/run/run_folder.h"

/// Runs of one config and identity are told apart by numbers: id, id-2, id-3, … They are
/// repetitions
/// (`forge run --force`), or runs of several projects, workspaces or users.
namespace forge::run {

/// The number of the run of this id that a folder of that name would be: 1 for id, 2 for id-2; 0
/// for another name.
int number_of(const std::string& id, const std::string& name);

/// The runs of one id in a runs folder.
struct NumberedRuns {
  std::string id;
  std::filesystem::path runs_dir;
  std::vector<int> numbers;  ///< rising; there may be gaps, where runs were removed

  std::string name_of(int number) const;
  RunFolder folder_of(int number) const { return RunFolder(runs_dir / name_of(number)); }
};

/// What may be runs of this id: what cannot be looked at counts.
NumberedRuns numbered_runs(const std::string& id, const std::filesystem::path& runs_dir);

/// Whether something has the name of this run folder already: what cannot be looked at counts.
bool may_be_run(const RunFolder& folder);

/// Whether it is another user's who does not let this one read its record.
bool is_closed_to_this_user(const RunFolder& folder);

/// Whether the folder holds a copy of another run, a run of another project, or of another config:
/// a/x and a_x have one name; or was renamed, or is another user's who lets this one not read it.
/// Projects have runs of their own, since each project's tables show its own runs. Throws Error for
/// one of another identity under the same key.
bool is_another(const RunFolder& folder, const RunRecord& planned);

/// The number of the newest folder of the planned run; 0: there is none. What another user repeats,
/// as one who may not read this user's run, is no reason to train again what is completed here.
int own_number(const RunRecord& planned, const NumberedRuns& existing);

/// The number of a new run, where runs of the names `taken` are still to be made. One below the
/// highest stays free: a removed run may come back to it.
int new_number(const NumberedRuns& existing, const std::vector<std::string>& taken = {});

/// The id of the newest run whose project is gone from the planned run's workspace: it may have
/// been renamed since. None: "".
std::string orphan_of(const RunRecord& planned, const NumberedRuns& existing);

/// The id of the newest run that is another user's whom this one may not read from. None: "".
std::string closed_of(const NumberedRuns& existing);

/// The folder of the run of its project and workspace that is in the runs folder already, whatever
/// its number; of none that of a new one, after the highest number.
RunFolder own_folder(const RunRecord& record, const std::filesystem::path& runs_dir);

/// The same for a run that comes from elsewhere: the folder where it is already, known by when it
/// began, or a new one.
RunFolder arriving_folder(const RunRecord& record, const std::filesystem::path& runs_dir);

}  // namespace forge::run
