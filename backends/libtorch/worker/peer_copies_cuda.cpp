#include "backends/libtorch/worker/peer_copies.h"

#include <dlfcn.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace forge::libtorch {
namespace {

using Operation = CUstreamBatchMemOpParams;

/// Functions of CUDA's driver. Programs that are not on a GPU start without it, so it is not
/// linked.
struct Driver {
  decltype(&::cuStreamBatchMemOp) operate = nullptr;
  decltype(&::cuMemGetAddressRange) allocation_of = nullptr;
};

std::optional<Driver> load_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return {};
  Driver driver;
  driver.operate =
      reinterpret_cast<decltype(driver.operate)>(::dlsym(library, "cuStreamBatchMemOp_v2"));
  driver.allocation_of =
      reinterpret_cast<decltype(driver.allocation_of)>(::dlsym(library, "cuMemGetAddressRange_v2"));
  if (!driver.operate || !driver.allocation_of) return {};
  return driver;
}

/// Where others find memory of this process.
struct Invitation {
  int64_t is_valid = 0;
  int64_t offset = 0;  ///< in the allocation that the handle is of
  cudaIpcMemHandle_t handle = {};
};

char* address_of(const at::Tensor& memory) { return static_cast<char*>(memory.data_ptr()); }

int64_t bytes_in(const at::Tensor& memory) { return int64_t(memory.nbytes()); }

CUdeviceptr flag_at(char* flags, int index) {
  return reinterpret_cast<CUdeviceptr>(flags) + sizeof(int32_t) * static_cast<size_t>(index);
}

Operation write_to(CUdeviceptr flag, uint32_t value) {
  Operation operation = {};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = flag;
  operation.writeValue.value = value;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // after what the stream did before
  return operation;
}

Operation wait_for(CUdeviceptr flag) {
  Operation operation = {};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = flag;
  operation.waitValue.value = 1;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return operation;
}

}  // namespace

struct PeerCopies::State {
  struct Shared {
    at::Tensor memory;          ///< kept as long as others may write there
    std::vector<char*> places;  ///< the same memory of each process
  };
  /// The piece of what is sent that a process is to get.
  using PieceFor = std::function<const char*(int process)>;

  const Driver driver;
  const int rank, count;
  const at::Device device;
  const c10::cuda::CUDAStream stream;
  std::vector<char*> flags;  ///< of each process: who is ready for it, whose pieces it has
  std::map<const char*, Shared> shared;
  std::vector<void*> opened;

  State(const Driver& functions, const ProcessGroup& group, const at::Device& of)
      : driver(functions),
        rank(group.rank()),
        count(group.count()),
        device(of),
        // It goes before the others: what it moves is waited for.
        stream(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, of.index())) {}

  ~State() {
    static_cast<void>(::cudaStreamSynchronize(stream.stream()));
    for (void* allocation : opened) static_cast<void>(::cudaIpcCloseMemHandle(allocation));
  }

  Invitation invitation_to(const at::Tensor& memory) const {
    Invitation invitation;
    CUdeviceptr begin = 0;
    const auto address = reinterpret_cast<CUdeviceptr>(memory.data_ptr());
    if (driver.allocation_of(&begin, nullptr, address) != CUDA_SUCCESS) return invitation;
    if (::cudaIpcGetMemHandle(&invitation.handle, memory.data_ptr()) != cudaSuccess) {
      static_cast<void>(::cudaGetLastError());  // it is no fault
      return invitation;
    }
    invitation.is_valid = 1;
    invitation.offset = int64_t(address - begin);
    return invitation;
  }

  /// Null where that process's memory is out of reach.
  char* accept(const Invitation& invitation) {
    if (!invitation.is_valid) return nullptr;
    void* allocation = nullptr;
    if (::cudaIpcOpenMemHandle(&allocation, invitation.handle, cudaIpcMemLazyEnablePeerAccess) !=
        cudaSuccess) {
      static_cast<void>(::cudaGetLastError());
      return nullptr;
    }
    opened.push_back(allocation);
    return static_cast<char*>(allocation) + invitation.offset;
  }

  /// Collective: where each process has what is `memory` here. Empty where one cannot reach
  /// another's.
  std::vector<char*> places_of(ProcessGroup& group, const at::Tensor& memory) {
    const Invitation own = invitation_to(memory);
    at::Tensor said = at::empty({int64_t(sizeof own)}, at::kByte);
    std::memcpy(said.data_ptr(), &own, sizeof own);
    const at::Tensor all = group.gather(said).contiguous();
    std::vector<char*> places;
    bool reaches_all = true;
    for (int process = 0; process < count; ++process) {
      Invitation invitation;
      std::memcpy(&invitation, all.select(0, process).data_ptr(), sizeof invitation);
      places.push_back(process == rank ? address_of(memory) : accept(invitation));
      reaches_all = reaches_all && places.back();
    }
    for (const double others : group.gather(std::vector<double>{reaches_all ? 1.0 : 0.0}))
      reaches_all = reaches_all && others == 1;
    return reaches_all ? places : std::vector<char*>();
  }

  void share(ProcessGroup& group, const at::Tensor& memory) {
    std::vector<char*> places = places_of(group, memory);
    if (!places.empty()) shared[address_of(memory)] = {memory, std::move(places)};
  }

  const Shared* find(const at::Tensor& into) const {
    auto after = shared.upper_bound(address_of(into));
    if (after == shared.begin()) return nullptr;
    const Shared& found = std::prev(after)->second;
    const int64_t offset = address_of(into) - address_of(found.memory);
    return offset + bytes_in(into) <= bytes_in(found.memory) ? &found : nullptr;
  }

  CUdeviceptr ready(int at, int of) const { return flag_at(flags[size_t(at)], of); }
  CUdeviceptr done(int at, int of) const { return flag_at(flags[size_t(at)], count + of); }

  void operate(std::vector<Operation> operations) const {
    const CUresult result = driver.operate(
        stream.stream(), static_cast<unsigned>(operations.size()), operations.data(), 0);
    TORCH_CHECK(result == CUDA_SUCCESS, "cuStreamBatchMemOp failed with error ", int(result));
  }

  void copy(char* to, const char* from, int64_t bytes) const {
    C10_CUDA_CHECK(::cudaMemcpyAsync(
        to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream.stream()));
  }

  /// Of `into` each process gets an equal piece from each other one.
  Transfer begin(const at::Tensor& sent, const PieceFor& piece_for, const at::Tensor& into) const {
    const Shared& to = *find(into);
    const int64_t bytes = bytes_in(into) / count;
    const int64_t own_piece = address_of(into) - address_of(to.memory) + rank * bytes;
    const auto begun = std::make_shared<at::cuda::CUDAEvent>();
    begun->record(c10::cuda::getCurrentCUDAStream(device.index()));
    begun->block(stream);

    // The others may write here: nothing reads any more what was there before.
    std::vector<Operation> operations;
    for (int process = 0; process < count; ++process)
      if (process != rank) operations.push_back(write_to(ready(process, rank), 1));
    operate(std::move(operations));
    // Each process begins with another one, so that none of them is written to by all at once.
    for (int step = 1; step < count; ++step) {
      const int process = (rank + step) % count;
      operate({wait_for(ready(rank, process)), write_to(ready(rank, process), 0)});
      copy(to.places[size_t(process)] + own_piece, piece_for(process), bytes);
      operate({write_to(done(process, rank), 1)});
    }
    operations.clear();
    for (int process = 0; process < count; ++process) {
      if (process == rank) continue;
      operations.push_back(wait_for(done(rank, process)));
      operations.push_back(write_to(done(rank, process), 0));
    }
    operate(std::move(operations));

    const auto arrived = std::make_shared<at::cuda::CUDAEvent>();
    arrived->record(stream);
    const c10::DeviceIndex index = device.index();
    return {into.view({count, -1}), sent, [begun, arrived, index] {
              arrived->block(c10::cuda::getCurrentCUDAStream(index));
            }};
  }
};

std::shared_ptr<PeerCopies> PeerCopies::connect(ProcessGroup& group, const at::Device& device) {
  // Who has told NCCL that GPUs must not reach each other's memory means it.
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  const std::optional<Driver> driver =
      disabled && std::strcmp(disabled, "0") != 0 ? std::nullopt : load_driver();
  for (const double others : group.gather(std::vector<double>{driver ? 1.0 : 0.0}))
    if (others == 0) return nullptr;
  const auto state = std::make_shared<State>(*driver, group, device);
  const auto numbers = at::TensorOptions(device).dtype(at::kInt);
  const at::Tensor flags = at::zeros({2 * state->count}, numbers);
  state->flags = state->places_of(group, flags);  // whose gathers come after all have zeros
  if (state->flags.empty()) return nullptr;
  state->shared[address_of(flags)] = {flags, {}};

  // Some machines copy between GPUs, and what arrives is wrong.
  constexpr int64_t tried = 4096;
  const auto copies = std::shared_ptr<PeerCopies>(new PeerCopies(state));
  const at::Tensor landing = at::empty({state->count * tried}, numbers);
  copies->share(group, landing);
  if (!copies->reaches(landing)) return nullptr;
  const at::Tensor sent = at::arange(landing.numel(), numbers) * (state->rank + 1);
  at::Tensor received = copies->begin_exchange(sent, landing).finish();
  received.select(0, state->rank).copy_(sent.view({state->count, -1}).select(0, state->rank));
  const bool is_right = at::equal(received, group.exchange(sent));
  for (const double others : group.gather(std::vector<double>{is_right ? 1.0 : 0.0}))
    if (others == 0) return nullptr;
  return copies;
}

void PeerCopies::share(ProcessGroup& group, const at::Tensor& memory) {
  state_->share(group, memory);
}

bool PeerCopies::reaches(const at::Tensor& into) const {
  const State::Shared* found = state_->find(into);
  return found && !found->places.empty();
}

Transfer PeerCopies::begin_exchange(const at::Tensor& sent, const at::Tensor& into) {
  const at::Tensor all = sent.contiguous();
  const char* first = address_of(all);
  const int64_t bytes = bytes_in(into) / state_->count;
  return state_->begin(
      all, [first, bytes](int process) { return first + process * bytes; }, into);
}

Transfer PeerCopies::begin_gather(const at::Tensor& own, const at::Tensor& into) {
  const at::Tensor piece = own.contiguous();
  const at::Tensor place = into.view({state_->count, -1}).select(0, state_->rank);
  if (address_of(place) != address_of(piece)) place.copy_(piece.view({-1}));
  const char* first = address_of(piece);
  return state_->begin(
      piece, [first](int) { return first; }, into);
}

}  // namespace forge::libtorch
