#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// The order in which one command trains several configs, so that what happens to the machine
/// meanwhile makes none of them look faster.
namespace forge::app {

/// The places of the configs in each of their turns: `keys[turn][config]` names a run, "" is none.
/// The order within a turn is drawn anew each time, so that no rhythm of the machine, of its users
/// or of commands can come in step with it. Of n turns no config comes before another one in more
/// than √n turns more than behind it: where it has come so often before it in the turns that were
/// drawn before this one, which may be later ones, it comes behind it. Of many configs a few come
/// before another one somewhat oftener. The draw is made from the keys, which say of what the runs
/// are: the same command gives the same order. `salt`: the same keys with another one give
/// another order.
std::vector<std::vector<size_t>> order_of_turns(const std::vector<std::vector<std::string>>& keys,
                                                const std::string& salt);

}  // namespace forge::app
