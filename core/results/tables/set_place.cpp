#include "core/results/tables/set_place.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/base/text.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/row_comparison.h"

namespace forge::tables {
namespace {

const std::string& begun(const RunSet& set) {
  return set.second_begun.empty() ? set.second_run : set.second_begun;
}

/// That of the later one of two which can be compared only when both are there.
RunSet together(const RunSet& a, const RunSet& b) {
  return {"", std::max(a.second_run, b.second_run), std::max(begun(a), begun(b))};
}

/// Sets, or ways to put sets of two rows together, beside what is shown.
struct Others {
  size_t before = 0;  ///< made before it, or at the same time
  size_t since = 0;

  void add(const RunSet& set, const RunSet& shown) { ++(is_before(set, shown) ? before : since); }

  void take_more(const Others& other) {
    before = std::max(before, other.before);
    since = std::max(since, other.since);
  }
};

/// The ways in which sets of the two rows can stand in one table, beside the shown one.
Others ways_of(const RunSets& a, const RunSets& b, const RunSet& shown) {
  const auto all_of = [](const RunSets& sets) {
    std::vector<RunSet> all = sets.others;
    all.push_back(sets.shown);
    return all;
  };
  const std::vector<RunSet> of_a = all_of(a), of_b = all_of(b);
  Others found;
  for (const RunSet& own : of_a) {
    for (const RunSet& other : of_b) {
      const bool is_shown = &own == &of_a.back() && &other == &of_b.back();
      if (!is_shown && !own.conditions.empty() && own.conditions == other.conditions)
        found.add(together(own, other), shown);
    }
  }
  return found;
}

/// So many other sets could have been compared: as many as one of the rows has, or where sets of
/// two rows go together in more ways than the shown one, as many as these.
Others others_of(const std::vector<const AblationRow*>& rows) {
  RunSet shown;
  for (const AblationRow* row : rows) shown = together(shown, row->sets.shown);
  Others most;
  for (const AblationRow* row : rows) {
    Others own;
    for (const RunSet& other : row->sets.others) own.add(other, shown);
    most.take_more(own);
    for (const AblationRow* other : rows)
      if (other != row) most.take_more(ways_of(row->sets, other->sets, shown));
  }
  return most;
}

std::set<std::string> tables_declared_together(const std::vector<const AblationRow*>& rows) {
  std::set<std::string> tables;
  for (const AblationRow* row : rows)
    tables.insert(row->sets.tables.begin(), row->sets.tables.end());
  return tables;
}

/// Of runs that were trained together, a table by each key that they differ in shows others first.
size_t views_of(const std::vector<const AblationRow*>& rows) {
  size_t views = 1;
  for (const AblationRow* row : rows) {
    const size_t by_key = row->group.empty() ? 0 : 1;
    views = std::max(views, std::min(row->sets.swept.size(), row->sets.swept_sets) + by_key);
  }
  return views;
}

/// "Canon-A", in a table with rows by a key "Canon-A (0.001)".
std::string name_of(const AblationRow& row) {
  return row.group.empty() ? row.spec.name : row.spec.name + " (" + row.group + ")";
}

}  // namespace

bool is_before(const RunSet& set, const RunSet& other) {
  return set.second_run <= other.second_run || begun(set) <= begun(other);
}

bool is_trained_with(const RunSet& other, const RunSet& shown) {
  return !is_before(other, shown) && !other.first_run.empty() &&
         other.first_run <= shown.second_run;
}

double SetPlace::factor() const {
  return statistics::set_factor(number) * static_cast<double>((1 + tables) * views);
}

SetPlace place_of(const std::vector<const AblationRow*>& rows) {
  return {1 + others_of(rows).before, tables_declared_together(rows).size(), views_of(rows)};
}

SetupEntry describe_other_sets(const Ablation& ablation) {
  std::vector<std::string> counts, sentences;
  Others most;
  size_t views = 1;
  std::set<std::string> keys, tables;
  std::vector<std::string> later_rows;
  const auto comparisons = comparisons_of(ablation);
  for (const auto& rows : comparisons) {
    const Others others = others_of(rows);
    most.take_more(others);
    views = std::max(views, views_of(rows));
    if (others.before > 0) later_rows.push_back(name_of(*rows.front()));
    for (const AblationRow* row : rows)
      keys.insert(row->sets.differ_in.begin(), row->sets.differ_in.end());
    const std::set<std::string> declared = tables_declared_together(rows);
    tables.insert(declared.begin(), declared.end());
  }
  if (most.before + most.since > 0) {
    const std::string differ_in = first_of({keys.begin(), keys.end()});
    const std::string of_rows =
        later_rows.size() == comparisons.size() ? "" : " for " + first_of(later_rows);
    std::vector<std::string> parts;
    if (most.before > 0)
      parts.push_back(counted(most.before, "earlier set") + " of runs counted" + of_rows);
    if (most.since > 0) parts.push_back(counted(most.since, "set") + " of runs made since");
    counts.push_back(join(parts, ", ") + " (" + differ_in + ")");
    sentences.push_back(counted(most.before + most.since, "other set") +
                        " of runs of these configs, under these names or older ones, shown or not, "
                        "could stand here "
                        "(they differ in " +
                        differ_in + "), " + std::to_string(most.before) +
                        " of them made before those that are compared" +
                        (most.before > 0 ? of_rows : "") + ": each of these counts as a look");
  }
  if (!tables.empty()) {
    const std::string names = join({tables.begin(), tables.end()}, ", ");
    counts.push_back("runs of " + counted(tables.size(), "other table") + " counted (" + names +
                     ")");
    sentences.push_back("before these runs others of the same configs were made for " + names +
                        ", declared together with this table: p is multiplied by " +
                        std::to_string(1 + tables.size()));
  }
  if (views > 1) {
    counts.push_back("views along " + counted(views, "key") + " counted");
    sentences.push_back("runs that differ in " + counted(views, "key") +
                        " were trained together, and a table along each of them shows others "
                        "first: p is multiplied by " +
                        std::to_string(views));
  }
  if (counts.empty()) return {};
  return {"Other runs", join(sentences, "; "), join(counts, ", ")};
}

}  // namespace forge::tables
