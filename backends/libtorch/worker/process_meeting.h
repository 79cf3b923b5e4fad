#pragma once

#include <exception>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// What the processes of a run share before they can speak: keys and values in a file.
using MeetingPlace = c10::intrusive_ptr<c10d::Store>;

/// The place that a request's processes name, where all of them are. Waits as long as they allow.
/// Throws Error for a place that is no file, LostProcess where the others do not come.
MeetingPlace meet_processes(const worker::Processes& processes);

/// "a process of this run lost another one: …", with a library's words.
LostProcess lost_process(const std::string& what, const std::exception& problem);

/// A view of the numbers as bytes: not every library knows every type, and none has to add.
inline at::Tensor bytes_of(const at::Tensor& numbers) { return numbers.view(at::kByte); }

/// What `begin` starts, which returns a library's work. Throws LostProcess, as its waiting does.
template <class Begin>
Transfer transfer(const at::Tensor& received, const at::Tensor& sent, const Begin& begin) {
  const auto told = [](const auto& act) {
    try {
      return act();
    } catch (const std::exception& problem) {
      throw lost_process("lost another one", problem);
    }
  };
  const auto work = told(begin);
  return {received, sent, [told, work] { told([&] { return work->wait(); }); }};
}

/// ProcessGroup::begin_exchange by one of LibTorch's groups.
template <class Group>
Transfer begin_all_to_all(Group& group, int count, const at::Tensor& sent, const at::Tensor& into) {
  at::Tensor in = bytes_of(sent.contiguous().view({count, -1}));
  at::Tensor out = into.defined() ? bytes_of(into).view({count, -1}) : at::empty_like(in);
  std::vector<int64_t> even;  // parts of one size
  return transfer(
      out.view(sent.scalar_type()), in, [&] { return group.alltoall_base(out, in, even, even); });
}

}  // namespace forge::libtorch
