#pragma once

namespace forge::data {

/// Which of the two endless sequences of what is generated.
enum class Split { training, evaluation };

}  // namespace forge::data
