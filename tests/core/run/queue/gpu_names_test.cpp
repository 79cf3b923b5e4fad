#include "core/run/queue/gpu_names.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace forge::queue {
namespace {

/// Variables of this process for the life of the object.
class Variables {
 public:
  using Set = std::vector<std::pair<const char*, const char*>>;
  explicit Variables(Set set) : set_(std::move(set)) {
    for (const auto& [name, value] : set_) ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const auto& [name, value] : set_) ::unsetenv(name);
  }

 private:
  Set set_;
};

TEST_CASE("a GPU has the machine's name, and its own process finds it by that", "[queue][lease]") {
  CHECK(machine_name("cuda:1") == "cuda:1");
  CHECK(visible_name("cuda:1") == "cuda:1");
  {
    const Variables some(Variables::Set{{"CUDA_VISIBLE_DEVICES", "3,GPU-8932f937"}});
    CHECK(machine_name("cpu") == "cpu");
    CHECK(machine_name("cuda:0") == "cuda:3");
    CHECK(machine_name("cuda:1") == "cuda:GPU-8932f937");
    CHECK(machine_name("cuda:2") == "cuda:2");  // there is none
    CHECK(visible_name("cuda:3") == "cuda:0");
    CHECK_FALSE(visible_name("cuda:0"));
    CHECK(visible_name("cpu") == "cpu");
  }
  {
    // Slurm hides the other GPUs of the machine and numbers the job's anew.
    const Variables job(Variables::Set{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_JOB_GPUS", "2,5"}});
    CHECK(machine_name("cuda:0") == "cuda:2");
    CHECK(machine_name("cuda:1") == "cuda:5");
    CHECK(visible_name("cuda:5") == "cuda:1");
    const Variables step(Variables::Set{{"SLURM_STEP_GPUS", "5"}});
    CHECK(machine_name("cuda:0") == "cuda:5");
  }
  {
    // It does not hide them everywhere.
    const Variables job(Variables::Set{{"CUDA_VISIBLE_DEVICES", "2,5"}, {"SLURM_JOB_GPUS", "2,5"}});
    CHECK(machine_name("cuda:1") == "cuda:5");
  }
  for (const char* const odd : {"", "../x", "0,,1", "-1,0"}) {
    const Variables given(Variables::Set{{"CUDA_VISIBLE_DEVICES", odd}});
    CHECK(machine_name("cuda:0").find('/') == std::string::npos);
  }
}

}  // namespace
}  // namespace forge::queue
