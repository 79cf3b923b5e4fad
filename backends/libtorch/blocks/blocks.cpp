#include "backends/libtorch/blocks/attention/attention.h"
#include "backends/libtorch/blocks/mlp/mlp.h"
#include "backends/libtorch/model/block.h"

namespace forge::libtorch {
namespace {

template <class Kind>
std::unique_ptr<Block> make(const BlockArguments& arguments) {
  return std::make_unique<Kind>(arguments);
}

}  // namespace

const std::map<std::string, BlockMaker>& block_kinds() {
  static const std::map<std::string, BlockMaker> kinds = {
      {"attention", make<AttentionBlock>},
      {"mlp", make<MlpBlock>},
  };
  return kinds;
}

}  // namespace forge::libtorch
