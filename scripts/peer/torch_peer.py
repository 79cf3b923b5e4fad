#!/usr/bin/env python3
"""What a PyTorch user would run instead of forge: training steps of a Llama with or without Canon layers.

    torch_peer.py --size tiny --canon ABCD --compile reduce-overhead --precision bf16
    torch_peer.py --device cpu --batch 8 --canon ABCD --canon-form conv

Prints one JSON line: tokens per second of each of five windows and their median, peak memory and the
time (seconds since 1970) when the first step had ended. scripts/bench-peer runs it beside forge. Needs
torch 1.13 or later. Memory is what the caching allocator had reserved at most; on a CPU the process's
largest resident size.
"""
import argparse
import json
import os
import resource
import statistics
import sys
import time
import warnings

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as problem:
    sys.exit(f"torch_peer: {problem}; run it with a Python that has torch")

from sizes import EPS, GRADIENT_CLIP, SIZES, TAPS

WINDOWS = 5
BATCHES = 8  # taken in turn


class PlainRMSNorm(nn.Module):
    """For torch without RMSNorm (before 2.4)."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def plain_attention(q, k, v):
    """For torch without scaled_dot_product_attention (before 2.0)."""
    length = q.shape[-2]
    mask = torch.full((length, length), float("-inf"), device=q.device).triu(1)
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask, -1) @ v


def library_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


RMSNorm = getattr(nn, "RMSNorm", PlainRMSNorm)
attention = library_attention if hasattr(F, "scaled_dot_product_attention") else plain_attention


class Canon(nn.Module):
    """Depthwise causal convolution with residual. Its form `shift` is a sum of shifted rows, which the
    compiler fuses; `conv` is F.conv1d with as many groups as channels. Neither is always the faster."""

    def __init__(self, channels, form):
        super().__init__()
        self.form = form
        self.weight = nn.Parameter(torch.empty(channels, 1, TAPS).uniform_(-0.5, 0.5))

    def forward(self, x):
        length, weight = x.shape[1], self.weight.to(x.dtype)
        if self.form == "conv":
            y = F.conv1d(x.transpose(1, 2), weight, padding=TAPS - 1, groups=x.shape[-1])
            return x + y[..., :length].transpose(1, 2)
        padded = F.pad(x, (0, 0, TAPS - 1, 0))
        return x + sum(padded[:, tap : length + tap] * weight[:, 0, tap] for tap in range(TAPS))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, size, canon, form):
        super().__init__()
        hidden, mlp, self.heads = size["hidden"], size["mlp"], size["heads"]
        self.norm1, self.norm2 = RMSNorm(hidden, eps=EPS), RMSNorm(hidden, eps=EPS)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * mlp, bias=False)
        self.down = nn.Linear(mlp, hidden, bias=False)
        widths = {"A": hidden, "B": 3 * hidden, "C": hidden, "D": 2 * mlp}
        self.canon = nn.ModuleDict({position: Canon(widths[position], form) for position in canon})

    def at(self, position, x):
        return self.canon[position](x) if position in self.canon else x

    def forward(self, x, cos, sin):
        rows, length, _ = x.shape
        qkv = self.at("B", self.qkv(self.at("A", self.norm1(x))))
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in qkv.chunk(3, -1))
        if cos is not None:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = attention(q, k, v).transpose(1, 2).reshape(rows, length, -1)
        x = x + self.out(y)
        gate, up = self.at("D", self.gate_up(self.at("C", self.norm2(x)))).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, size, canon, rope, form, rotary_dtype):
        super().__init__()
        self.embed = nn.Embedding(size["vocab"], size["hidden"])
        self.blocks = nn.ModuleList(Block(size, canon, form) for _ in range(size["layers"]))
        self.norm = RMSNorm(size["hidden"], eps=EPS)
        self.head = nn.Linear(size["hidden"], size["vocab"], bias=False)
        self.rope = rope
        width = size["hidden"] // size["heads"]
        frequency = 1e4 ** (-torch.arange(0, width, 2).float() / width)
        angle = torch.outer(torch.arange(size["seq"]).float(), frequency).repeat(1, 2)
        self.register_buffer("cos", angle.cos().to(rotary_dtype))
        self.register_buffer("sin", angle.sin().to(rotary_dtype))

    def forward(self, ids, labels):
        x = self.embed(ids)
        cos, sin = (self.cos, self.sin) if self.rope else (None, None)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x)).view(-1, self.head.out_features)
        return F.cross_entropy(logits.float(), labels.view(-1))


class Training:
    """Steps of one model on one device."""

    def __init__(self, options, size):
        gpu = options.device == "cuda"
        self.device = options.device
        self.autocast = gpu and options.precision == "autocast"
        torch.manual_seed(0)
        rotary_dtype = torch.bfloat16 if options.precision != "float32" else torch.float32
        self.model = Model(size, options.canon, not options.nope, options.canon_form, rotary_dtype)
        self.model.to(options.device)
        if options.precision == "bf16":
            self.model.bfloat16()
        fused = {"fused": True} if gpu else {}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, **fused)
        self.forward = self.model
        if options.compile != "none":
            self.forward = torch.compile(self.model, mode=options.compile)
        shape = (size["batch"], size["seq"] + 1)
        self.batches = [torch.randint(0, size["vocab"], shape, device=options.device) for _ in range(BATCHES)]
        self.steps = 0

    def step(self):
        ids = self.batches[self.steps % BATCHES]
        self.steps += 1
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.forward(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def seconds_of(self, steps):
        started = time.perf_counter()
        for _ in range(steps):
            self.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started


def measure(options):
    gpu = options.device == "cuda"
    size = dict(SIZES[options.size])
    size["batch"] = options.batch or size["batch"]
    steps = options.steps or (20 if gpu else 2)
    training = Training(options, size)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    training.seconds_of(1)
    first_step_ended = time.time()
    training.seconds_of(9 if gpu else 1)  # the rest of the warm-up
    tokens = steps * size["batch"] * size["seq"]
    windows = [tokens / training.seconds_of(steps) for _ in range(WINDOWS)]
    if gpu:
        peak, device = torch.cuda.max_memory_reserved(), torch.cuda.get_device_name()
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        device = f"CPU, {torch.get_num_threads()} threads"
    speed = statistics.median(windows)
    return {
        "size": size,
        "canon": options.canon,
        "position": "nope" if options.nope else "rope",
        "parameters": sum(weight.numel() for weight in training.model.parameters()),
        "precision": options.precision,
        "compile": options.compile,
        "canon_form": options.canon_form if options.canon else "",
        "windows": windows,
        "tokens_per_second": speed,
        "step_seconds": size["batch"] * size["seq"] / speed,
        "peak_memory_bytes": peak,
        "first_step_ended": first_step_ended,
        "device": device,
        "torch": torch.__version__,
    }


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="tiny", choices=SIZES)
    parser.add_argument("--canon", default="", metavar="SET", help="letters of ABCD; default: none")
    parser.add_argument("--nope", action="store_true", help="without position encoding")
    parser.add_argument("--canon-form", default="shift", choices=["shift", "conv"])
    parser.add_argument("--compile", default="none", help="none, default, reduce-overhead or max-autotune")
    parser.add_argument("--precision", choices=["float32", "autocast", "bf16"],
                        help="bf16: of the weights too; default: autocast on a GPU, float32 on a CPU")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--batch", type=int, help="rows of a step, instead of the size's own")
    parser.add_argument("--steps", type=int, help="of each window; default: 20 on a GPU, 2 on a CPU")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="on a CPU")
    options = parser.parse_args()
    if not set(options.canon) <= set("ABCD"):
        parser.error(f"--canon '{options.canon}': letters of ABCD")
    if options.precision is None:
        options.precision = "autocast" if options.device == "cuda" else "float32"
    if options.device == "cpu" and options.precision == "autocast":
        parser.error("--precision autocast is for a GPU")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_peer: torch sees no GPU; --device cpu measures without one")
    return options


def main():
    warnings.filterwarnings("ignore")  # of what the compiler would like to be told
    options = parse()
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
