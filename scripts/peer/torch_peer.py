#!/usr/bin/env python3
"""What a PyTorch user would run instead of forge: training steps of a Llama with or without Canon layers.

    torch_peer.py --size tiny --canon ABCD --compile default --graph --canon-form triton
    torch_peer.py --size tiny --precision master --compile max-autotune --graph
    torch_peer.py --device cpu --batch 8 --canon ABCD --canon-form conv
    torch_peer.py --self-check --causal-conv1d DIR     compares and times the forms of Canon on a GPU

Prints one JSON line: tokens per second of each window and their median, peaks of memory and the time
(seconds since 1970) when the first step had ended. scripts/bench-peer runs it beside forge. Needs torch
1.13 or later.

Memory is what the caching allocator had reserved at most: of the whole process, which compiles first, and
of the windows alone, after unused memory was returned. What tensors held is no measure: it does not count
what a replayed graph uses. On a CPU both are the process's largest resident size.

Precisions: `autocast` keeps weights, gradients and AdamW's moments in float32; `master` keeps weights and
gradients in bfloat16, and for AdamW float32 copies and moments; `bf16` keeps all of them in bfloat16.
"""
import argparse
import gc
import json
import math
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

from sizes import ADAMW, EPS, GRADIENT_CLIP, SIZES, TAPS

BATCHES = 8  # taken in turn
FEWEST_WARM_UP_STEPS = 3
STEPS_BEFORE_CAPTURE = 3


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
KERNEL_FORMS = ("triton", "causal-conv1d")
attention = library_attention if hasattr(F, "scaled_dot_product_attention") else plain_attention


class Canon(nn.Module):
    """Depthwise causal convolution with residual. Its form `shift` is a sum of shifted rows, which the
    compiler fuses; `conv` is F.conv1d with as many groups as channels; `triton` and `causal-conv1d` are
    kernels for a GPU. None is always the fastest."""

    def __init__(self, channels, form):
        super().__init__()
        self.form = form
        self.weight = nn.Parameter(torch.empty(channels, 1, TAPS).uniform_(-0.5, 0.5))
        if form in KERNEL_FORMS:
            from canon_kernels import CONVOLUTIONS
            self.convolution = CONVOLUTIONS[form]
            residual = torch.zeros(TAPS)
            residual[-1] = 1
            # A plain attribute would not move to the GPU, and a module's bfloat16() leaves integers alone.
            self.register_buffer("residual", residual.to(torch.int32), persistent=False)

    def forward(self, x):
        if self.form in KERNEL_FORMS:
            return self.convolution(x, self.weight[:, 0].float() + self.residual)
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


class Updates:
    """AdamW with a clipped gradient. Of bfloat16 weights with float32 copies if `copies`."""

    def __init__(self, weights, copies, clip, **settings):
        self.weights = list(weights)
        self.updated = self.weights
        if copies:
            self.updated = [weight.detach().float() for weight in self.weights]
            for copy in self.updated:
                copy.grad = torch.zeros_like(copy)
        self.copies = copies
        self.clip = clip
        self.optimizer = torch.optim.AdamW(self.updated, **settings)

    @torch.no_grad()
    def step(self):
        if self.copies:
            torch._foreach_copy_([copy.grad for copy in self.updated], [weight.grad for weight in self.weights])
        torch.nn.utils.clip_grad_norm_(self.updated, self.clip)
        self.optimizer.step()
        if self.copies:
            torch._foreach_copy_(self.weights, self.updated)
        for weight in self.weights:
            weight.grad = None


class Training:
    """Steps of one model on one device."""

    def __init__(self, options, size, clip=GRADIENT_CLIP, **adamw):
        gpu = options.device == "cuda"
        self.device = options.device
        self.autocast = gpu and options.precision == "autocast"
        torch.manual_seed(0)
        rotary_dtype = torch.bfloat16 if options.precision != "float32" else torch.float32
        self.model = Model(size, options.canon, not options.nope, options.canon_form, rotary_dtype)
        self.model.to(options.device)
        if options.precision in ("bf16", "master"):
            self.model.bfloat16()
        settings = {"lr": 1e-3, **ADAMW, **adamw}
        if gpu:
            settings.update(fused=True, capturable=options.graph)
        self.updates = Updates(self.model.parameters(), options.precision == "master", clip, **settings)
        self.forward = self.model
        if options.compile != "none":
            # What captures the whole step has no use for graphs of its parts.
            inner = options.graph and options.compile == "max-autotune"
            self.forward = torch.compile(self.model, mode="max-autotune-no-cudagraphs" if inner else options.compile)
        shape = (size["batch"], size["seq"] + 1)
        self.batches = [torch.randint(0, size["vocab"], shape, device=options.device) for _ in range(BATCHES)]
        self.steps = 0
        self.graph = None

    def step(self):
        ids = self.batches[self.steps % len(self.batches)]
        self.steps += 1
        if self.graph is None:
            return self.whole_step(ids)
        self.ids.copy_(ids)
        self.graph.replay()
        return self.loss

    def whole_step(self, ids):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.forward(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        self.updates.step()
        return loss.detach()

    def capture(self):
        """Records forward, backward, clipping and update as one CUDA graph, which step() replays."""
        self.ids = self.batches[0].clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(STEPS_BEFORE_CAPTURE):
                self.whole_step(self.ids)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.whole_step(self.ids)
        self.graph = graph

    def seconds_of(self, steps):
        started = time.perf_counter()
        for _ in range(steps):
            self.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    def warm_up(self, seconds):
        """As forge does: at least three steps and `seconds`. Returns the seconds of a step."""
        began, done, count = time.perf_counter(), 0, 1
        while True:
            of_step = self.seconds_of(count) / count
            done += count
            if done >= FEWEST_WARM_UP_STEPS and time.perf_counter() - began >= seconds:
                return of_step
            if done >= FEWEST_WARM_UP_STEPS:
                count *= 2


def measure(options):
    gpu = options.device == "cuda"
    size = dict(SIZES[options.size])
    size["batch"] = options.batch or size["batch"]
    training = Training(options, size)
    training.seconds_of(1)
    first_step_ended = time.time()
    figures = {
        "size": size,
        "canon": options.canon,
        "position": "nope" if options.nope else "rope",
        "parameters": sum(weight.numel() for weight in training.model.parameters()),
        "precision": options.precision,
        "compile": options.compile,
        "graph": options.graph,
        "canon_form": options.canon_form if options.canon else "",
        "first_step_ended": first_step_ended,
        "device": torch.cuda.get_device_name() if gpu else f"CPU, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
    }
    if options.start_only:
        return figures
    if options.graph:
        training.capture()
    of_step = training.warm_up(options.window_seconds)
    if gpu:
        gc.collect()
        torch.cuda.empty_cache()
        start_peak = torch.cuda.max_memory_reserved()
        torch.cuda.reset_peak_memory_stats()
    tokens = size["batch"] * size["seq"]
    steps = options.steps or max(1, math.ceil(options.window_seconds / of_step))
    windows = [tokens * steps / training.seconds_of(steps) for _ in range(options.windows)]
    if gpu:
        peak = torch.cuda.max_memory_reserved()
    else:
        start_peak = peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    speed = statistics.median(windows)
    return {**figures, "windows": windows, "window_steps": steps, "tokens_per_second": speed,
            "step_seconds": tokens / speed, "peak_memory_bytes": peak, "start_peak_memory_bytes": max(start_peak, peak)}


# --- the forms of Canon beside each other ----------------------------------------------------------------

LARGEST_DIFFERENCE = {torch.float32: 1e-5, torch.bfloat16: 0.02}  # relative to the largest number


def check_form(form, options):
    """Whether a form computes what float64's sum of shifted rows does, and its times at the size's shapes."""
    try:
        if form == "causal-conv1d":
            import canon_kernels
            canon_kernels.load_causal_conv1d(options.causal_conv1d)
        wrong = []
        for dtype, largest in LARGEST_DIFFERENCE.items():
            for shape in ((2, 1, 8), (1, 3, 16), (2, 5, 40), (2, 129, 64), (3, 300, 776)):
                worst = difference_of(form, shape, dtype)
                if not worst <= largest:  # a NaN is wrong, too
                    wrong.append({"dtype": str(dtype), "shape": shape, "difference": worst})
        size = SIZES[options.size]
        widths = {"A": size["hidden"], "B": 3 * size["hidden"], "D": 2 * size["mlp"]}
        times = {position: times_of(form, (size["batch"], size["seq"], width)) for position, width in widths.items()}
    except Exception as problem:  # noqa: BLE001  (a compiler's, a library's or a driver's)
        return {"form": form, "agrees": False, "failed": f"{type(problem).__name__}: {problem}"[-2000:]}
    return {"form": form, "agrees": not wrong, "differences": wrong, "seconds": times}


def canon_pass(form, x, weight, gradient):
    """Output and gradients of one layer of `form`."""
    layer = Canon(x.shape[-1], form).to(x.device)
    layer.weight = nn.Parameter(weight.clone())
    x = x.clone().requires_grad_()
    y = layer(x)
    y.backward(gradient)
    return y.detach(), x.grad, layer.weight.grad


def difference_of(form, shape, dtype):
    torch.manual_seed(1)
    x, gradient = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(2))
    weight = torch.empty(shape[-1], 1, TAPS, device="cuda").uniform_(-0.5, 0.5)
    found = canon_pass(form, x, weight, gradient)
    wanted = canon_pass("shift", x.double(), weight.double(), gradient.double())
    return max(((a.double() - b).abs().max() / b.abs().max()).item() for a, b in zip(found, wanted))


def times_of(form, shape):
    """Seconds of a forward and of a forward and backward pass in bfloat16, each replayed as a graph."""
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    gradient = torch.randn_like(x)
    layer = Canon(shape[-1], form).to("cuda")
    forward = torch.compile(layer, dynamic=False) if form == "shift" else layer

    def both():
        x.grad = layer.weight.grad = None
        forward(x).backward(gradient)

    def once():
        with torch.no_grad():
            forward(x)

    return {"forward": seconds_of_graph(once), "forward_and_backward": seconds_of_graph(both)}


def seconds_of_graph(work, repeats=50):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    for _ in range(5):
        graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeats


def check_forms(options):
    agree = True
    for form in ("shift", "triton", "causal-conv1d") if options.causal_conv1d else ("shift", "triton"):
        row = check_form(form, options)
        print(json.dumps(row), flush=True)
        agree = agree and row["agrees"]
    return 0 if agree else 1


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="tiny", choices=SIZES)
    parser.add_argument("--canon", default="", metavar="SET", help="letters of ABCD; default: none")
    parser.add_argument("--nope", action="store_true", help="without position encoding")
    parser.add_argument("--canon-form", default="shift", choices=["shift", "conv", *KERNEL_FORMS])
    parser.add_argument("--causal-conv1d", metavar="DIR",
                        help="a checkout of Dao-AILab/causal-conv1d; built there unless it is")
    parser.add_argument("--compile", default="none", choices=["none", "default", "reduce-overhead", "max-autotune"])
    parser.add_argument("--graph", action="store_true", help="replay the whole step as one CUDA graph")
    parser.add_argument("--precision", choices=["float32", "autocast", "master", "bf16"],
                        help="default: autocast on a GPU, float32 on a CPU")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--batch", type=int, help="rows of a step, instead of the size's own")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window-seconds", type=float, default=1.0, help="at least about so long (1)")
    parser.add_argument("--steps", type=int, help="of each window, instead")
    parser.add_argument("--start-only", action="store_true", help="end after the first step")
    parser.add_argument("--self-check", action="store_true", help="compare and time the forms of Canon")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="on a CPU")
    options = parser.parse_args()
    if not set(options.canon) <= set("ABCD"):
        parser.error(f"--canon '{options.canon}': letters of ABCD")
    if options.precision is None:
        options.precision = "autocast" if options.device == "cuda" else "float32"
    if options.device == "cpu" and (options.precision in ("autocast", "master") or options.graph):
        parser.error("--precision autocast, --precision master and --graph are for a GPU")
    if options.device == "cpu" and (options.canon_form in KERNEL_FORMS or options.self_check):
        parser.error(f"--self-check and the forms {' and '.join(KERNEL_FORMS)} are for a GPU")
    if options.canon_form == "causal-conv1d" and not options.causal_conv1d:
        parser.error("--canon-form causal-conv1d: needs --causal-conv1d DIR")
    if options.graph and options.compile == "reduce-overhead":
        parser.error("--compile reduce-overhead has graphs of its own: no --graph")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_peer: torch sees no GPU; --device cpu measures without one")
    return options


def main():
    warnings.filterwarnings("ignore")  # of what the compiler would like to be told
    options = parse()
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    if options.self_check:
        return check_forms(options)
    if options.canon_form == "causal-conv1d":
        import canon_kernels
        canon_kernels.load_causal_conv1d(options.causal_conv1d)
    print(json.dumps(measure(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
