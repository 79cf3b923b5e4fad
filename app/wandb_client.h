#pragma once

#include <string_view>

namespace forge::app {

/// wandb_client.py, as it was when the program was built; CMake writes the definition.
std::string_view wandb_client();

}  // namespace forge::app
