#include "core/run/queue/gpu_names.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/support.h"

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
  const tests::TemporaryFolder none;
  CHECK(machine_name("cuda:1", none.path()) == "cuda:1");
  CHECK(visible_name("cuda:1", none.path()) == "cuda:1");
  {
    const Variables some(Variables::Set{{"CUDA_VISIBLE_DEVICES", "3,GPU-8932f937"}});
    CHECK(machine_name("cpu", none.path()) == "cpu");
    CHECK(machine_name("cuda:0", none.path()) == "cuda:3");
    CHECK(machine_name("cuda:1", none.path()) == "cuda:GPU-8932f937");
    CHECK(machine_name("cuda:2", none.path()) == "cuda:2");  // there is none
    CHECK(visible_name("cuda:3", none.path()) == "cuda:0");
    CHECK_FALSE(visible_name("cuda:0", none.path()));
    CHECK(visible_name("cpu", none.path()) == "cpu");
  }
  {
    const Variables spaced(Variables::Set{{"CUDA_VISIBLE_DEVICES", " 2, 3 ,"}});
    CHECK(machine_name("cuda:0", none.path()) == "cuda:2");
    CHECK(machine_name("cuda:1", none.path()) == "cuda:3");
    CHECK(visible_name("cuda:3", none.path()) == "cuda:1");
  }
  {
    const Variables part(Variables::Set{{"CUDA_VISIBLE_DEVICES", "MIG-GPU-8932f937/1/0"}});
    CHECK(machine_name("cuda:0", none.path()) == "cuda:MIG-GPU-8932f937_1_0");
    CHECK(visible_name("cuda:MIG-GPU-8932f937_1_0", none.path()) == "cuda:0");
  }
  for (const char* const odd : {"", "../x", "0,,1", "-1,0"}) {
    const Variables given(Variables::Set{{"CUDA_VISIBLE_DEVICES", odd}});
    CHECK(machine_name("cuda:0", none.path()).find('/') == std::string::npos);
  }
}

TEST_CASE("GPUs that a job or a container hides count for its numbers", "[queue][lease]") {
  const tests::TemporaryFolder files;  // the machine has more
  files.write("nvidia1", "");
  files.write("nvidia5", "");
  files.write("nvidiactl", "");
  CHECK(machine_name("cuda:0", files.path()) == "cuda:1");
  CHECK(machine_name("cuda:1", files.path()) == "cuda:5");
  CHECK(visible_name("cuda:5", files.path()) == "cuda:1");
  CHECK_FALSE(visible_name("cuda:0", files.path()));
  // Each of two commands of the job takes one. "1" is a number of the machine as well.
  const Variables second(Variables::Set{{"CUDA_VISIBLE_DEVICES", "1"}});
  CHECK(machine_name("cuda:0", files.path()) == "cuda:5");
  CHECK(visible_name("cuda:5", files.path()) == "cuda:0");
  const Variables turned(Variables::Set{{"CUDA_VISIBLE_DEVICES", "1,0"}});
  CHECK(machine_name("cuda:0", files.path()) == "cuda:5");
  CHECK(machine_name("cuda:1", files.path()) == "cuda:1");
}

}  // namespace
}  // namespace forge::queue
