#include "backends/libtorch/model/block.h"

namespace forge::libtorch {

// Each in the folder of its kind.
std::unique_ptr<Block> make_attention(const BlockArguments& arguments);
std::unique_ptr<Block> make_mlp(const BlockArguments& arguments);

const std::map<std::string, BlockMaker>& block_kinds() {
  static const std::map<std::string, BlockMaker> kinds = {
      {"attention", make_attention},
      {"mlp", make_mlp},
  };
  return kinds;
}

}  // namespace forge::libtorch
