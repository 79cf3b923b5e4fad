// Torch headers cost seconds a file; every file of this backend starts from this one.
// torch/torch.h is never included: it costs three times as much.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>
