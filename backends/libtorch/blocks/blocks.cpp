#include "backends/libtorch/model/block.h"

namespace forge::libtorch {

// Each in the folder of its kind.
std::unique_ptr<Block> make_attention(const BlockArguments& arguments);
std::unique_ptr<Block> make_gdn2(const BlockArguments& arguments);
std::unique_ptr<Block> make_gla5(const BlockArguments& arguments);
std::unique_ptr<Block> make_mamba2(const BlockArguments& arguments);
std::unique_ptr<Block> make_mlp(const BlockArguments& arguments);

const std::map<std::string, BlockMaker>& block_kinds() {
  static const std::map<std::string, BlockMaker> kinds = {
      {"attention", make_attention},
      {"gdn2", make_gdn2},
      {"gla5", make_gla5},
      {"mamba2", make_mamba2},
      {"mlp", make_mlp},
  };
  return kinds;
}

}  // namespace forge::libtorch
