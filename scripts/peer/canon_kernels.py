"""Canon's convolution on a GPU as one kernel each way: in Triton, and that of the causal-conv1d library.

    y[b, t, c] = sum over k of w[c, k] * x[b, t - 3 + k, c]      x before the row is 0

x is [batch, time, channels] and contiguous, w [channels, 4] and float32, sums are float32. Canon's residual
is the last tap plus one. Both are operators that torch.compile keeps as they are. Needs torch 2.4 or later.
"""
import importlib.util
import os
from pathlib import Path

import torch
import triton
import triton.language as tl

TAPS = 4
# Time steps and channels of a tile; of the backward pass also the time steps of a program, which holds
# one sum of each tap and channel.
FORWARD_TILE = (32, 128)
BACKWARD_TILE = (16, 64)
BACKWARD_SPAN = 128


@triton.jit
def forward_kernel(x, w, y, length, channels, blocks, TIME: tl.constexpr, CHANNELS: tl.constexpr):
    row = tl.program_id(0) // blocks
    t = (tl.program_id(0) % blocks) * TIME + tl.arange(0, TIME)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = c < channels
    total = tl.zeros((TIME, CHANNELS), tl.float32)
    for back in tl.static_range(4):
        s = t - back
        inside = ((s >= 0) & (s < length))[:, None] & known[None, :]
        values = tl.load(x + (row * length + s)[:, None] * channels + c[None, :], mask=inside, other=0.0)
        tap = tl.load(w + c * 4 + (3 - back), mask=known, other=0.0)
        total += values.to(tl.float32) * tap[None, :]
    tl.store(y + (row * length + t)[:, None] * channels + c[None, :], total.to(y.dtype.element_ty),
             mask=(t < length)[:, None] & known[None, :])


@triton.jit
def backward_kernel(dy, x, w, dx, partial, length, channels, blocks, SPAN: tl.constexpr, TIME: tl.constexpr,
                    CHANNELS: tl.constexpr):
    row = tl.program_id(0) // blocks
    begin = (tl.program_id(0) % blocks) * SPAN
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = c < channels
    w0 = tl.load(w + c * 4, mask=known, other=0.0)[None, :]
    w1 = tl.load(w + c * 4 + 1, mask=known, other=0.0)[None, :]
    w2 = tl.load(w + c * 4 + 2, mask=known, other=0.0)[None, :]
    w3 = tl.load(w + c * 4 + 3, mask=known, other=0.0)[None, :]
    sum0 = tl.zeros((TIME, CHANNELS), tl.float32)
    sum1 = tl.zeros((TIME, CHANNELS), tl.float32)
    sum2 = tl.zeros((TIME, CHANNELS), tl.float32)
    sum3 = tl.zeros((TIME, CHANNELS), tl.float32)
    for offset in range(0, SPAN, TIME):
        t = begin + offset + tl.arange(0, TIME)
        place = (row * length + t)[:, None] * channels + c[None, :]
        here = (t < length)[:, None] & known[None, :]
        values = tl.load(x + place, mask=here, other=0.0).to(tl.float32)
        d3 = tl.load(dy + place, mask=here, other=0.0).to(tl.float32)
        d2 = tl.load(dy + place + channels, mask=(t + 1 < length)[:, None] & known[None, :], other=0.0).to(tl.float32)
        d1 = tl.load(dy + place + 2 * channels, mask=(t + 2 < length)[:, None] & known[None, :],
                     other=0.0).to(tl.float32)
        d0 = tl.load(dy + place + 3 * channels, mask=(t + 3 < length)[:, None] & known[None, :],
                     other=0.0).to(tl.float32)
        total = d3 * w3 + d2 * w2 + d1 * w1 + d0 * w0
        tl.store(dx + place, total.to(dx.dtype.element_ty), mask=here)
        sum3 += values * d3
        sum2 += values * d2
        sum1 += values * d1
        sum0 += values * d0
    first = partial + tl.program_id(0) * 4 * channels + c
    tl.store(first, tl.sum(sum0, 0), mask=known)
    tl.store(first + channels, tl.sum(sum1, 0), mask=known)
    tl.store(first + 2 * channels, tl.sum(sum2, 0), mask=known)
    tl.store(first + 3 * channels, tl.sum(sum3, 0), mask=known)


@torch.library.custom_op("forge_peer::triton_conv", mutates_args=())
def triton_conv(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x, w = x.contiguous(), w.contiguous()
    batch, length, channels = x.shape
    y = torch.empty_like(x)
    time, width = FORWARD_TILE
    blocks = triton.cdiv(length, time)
    forward_kernel[(batch * blocks, triton.cdiv(channels, width))](
        x, w, y, length, channels, blocks, TIME=time, CHANNELS=width, num_warps=4)
    return y


@torch.library.custom_op("forge_peer::triton_conv_backward", mutates_args=())
def triton_conv_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x, w = dy.contiguous(), x.contiguous(), w.contiguous()
    batch, length, channels = x.shape
    dx = torch.empty_like(x)
    time, width = BACKWARD_TILE
    blocks = triton.cdiv(length, BACKWARD_SPAN)
    partial = x.new_empty((batch * blocks, TAPS, channels), dtype=torch.float32)
    backward_kernel[(batch * blocks, triton.cdiv(channels, width))](
        dy, x, w, dx, partial, length, channels, blocks, SPAN=BACKWARD_SPAN, TIME=time, CHANNELS=width, num_warps=4)
    return dx, partial.sum(0).t().contiguous()


# --- causal-conv1d -----------------------------------------------------------------------------------

library = None  # once load_causal_conv1d was called


def load_causal_conv1d(folder):
    """Loads the kernels of a checkout of Dao-AILab/causal-conv1d; builds them for this GPU first, in its
    folder `built`, unless they are there."""
    global library
    folder = Path(folder).resolve()
    built = folder / "built" / "causal_conv1d_cuda.so"
    if not built.exists():
        library = build_causal_conv1d(folder, built.parent)
        return
    description = importlib.util.spec_from_file_location("causal_conv1d_cuda", built)
    library = importlib.util.module_from_spec(description)
    description.loader.exec_module(library)


def build_causal_conv1d(folder, target):
    from torch.utils.cpp_extension import load
    sources = ["causal_conv1d.cpp", "causal_conv1d_fwd.cu", "causal_conv1d_bwd.cu", "causal_conv1d_update.cu"]
    os.environ["TORCH_CUDA_ARCH_LIST"] = "{}.{}".format(*torch.cuda.get_device_capability())
    target.mkdir(parents=True, exist_ok=True)
    # The library's own options; Torch's defaults switch off operators that it uses.
    kinds = ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_OPERATORS", "BFLOAT16_CONVERSIONS",
             "BFLOAT162_OPERATORS", "BFLOAT162_CONVERSIONS")
    flags = [f"-U__CUDA_NO_{kind}__" for kind in kinds]
    return load(name="causal_conv1d_cuda", sources=[str(folder / "csrc" / name) for name in sources],
                extra_include_paths=[str(folder / "csrc")], build_directory=str(target), extra_cflags=["-O3"],
                extra_cuda_cflags=["-O3", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda",
                                   *flags])


@torch.library.custom_op("forge_peer::library_conv", mutates_args=())
def library_conv(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x, w = x.contiguous(), w.contiguous()
    y = torch.empty_like(x)
    library.causal_conv1d_fwd(x.transpose(1, 2), w, None, None, None, y.transpose(1, 2), None, False)
    return y


@torch.library.custom_op("forge_peer::library_conv_backward", mutates_args=())
def library_conv_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    dy, x, w = dy.contiguous(), x.contiguous(), w.contiguous()
    dx, dw = torch.empty_like(x), torch.zeros_like(w)
    library.causal_conv1d_bwd(x.transpose(1, 2), w, None, dy.transpose(1, 2), None, None, None, dx.transpose(1, 2),
                              dw, None, None, False)
    return dx, dw


def differentiable(operator, backward_operator):
    """Says of an operator what its results look like and what its gradient is."""
    operator.register_fake(lambda x, w: x.new_empty(x.shape))
    backward_operator.register_fake(lambda dy, x, w: (x.new_empty(x.shape), w.new_empty(w.shape)))

    def keep(ctx, inputs, output):  # Torch calls it with these names
        ctx.save_for_backward(*inputs)

    def gradients(ctx, dy):
        return tuple(backward_operator(dy, *ctx.saved_tensors))

    operator.register_autograd(gradients, setup_context=keep)


differentiable(triton_conv, triton_conv_backward)
differentiable(library_conv, library_conv_backward)
CONVOLUTIONS = {"triton": torch.ops.forge_peer.triton_conv.default,
                "causal-conv1d": torch.ops.forge_peer.library_conv.default}
