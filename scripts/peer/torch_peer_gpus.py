#!/usr/bin/env python3
"""What a PyTorch user would run instead of forge on several GPUs of one machine: a process on each.

    torch_peer_gpus.py --size medium --kind ddp            weights on every GPU, gradients added by all-reduce
    torch_peer_gpus.py --size large --kind fsdp --gpus 4   weights, gradients and moments divided (FSDP2)
    torch_peer_gpus.py --device cpu --size tiny --rows 2 --kind ddp    without a GPU, to try it

The model, batches and optimizer are those of torch_peer.py; --rows are those of one GPU. DDP is compiled as a
whole under autocast, with gradients as views of its buckets. FSDP2 compiles each block, computes in bfloat16,
adds gradients in float32 and keeps weights in float32. Prints one JSON line as torch_peer.py does: tokens per
second are those of all GPUs, memory is that of the GPU that needs most. FSDP2 needs torch 2.4 or later.
"""
import argparse
import gc
import json
import math
import os
import socket
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

import torch_peer
from sizes import ADAMW, GRADIENT_CLIP, SIZES


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def join(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast over NVLink is not everywhere
    if options.device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", rank=rank, world_size=options.gpus)


def divided(training, options):
    """A model of the peer, trained together with those of the other processes."""
    model = training.model
    if options.kind == "ddp":
        settings = {} if options.device == "cpu" else {"device_ids": [torch.cuda.current_device()]}
        parallel = torch.nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True, static_graph=True, **settings)
        training.forward = torch.compile(parallel) if options.device == "cuda" else parallel
        return
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        block.compile()
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    training.autocast = False  # the policy says what is computed in bfloat16
    training.updates = torch_peer.Updates(model.parameters(), False, GRADIENT_CLIP, lr=1e-3, **ADAMW, fused=True)


def largest(number, device):
    """Of all processes."""
    numbers = torch.tensor([float(number)], dtype=torch.float64, device=device)
    dist.all_reduce(numbers, op=dist.ReduceOp.MAX)
    return numbers.item()


def peak_bytes(options):
    peak = torch.cuda.max_memory_reserved() if options.device == "cuda" else 0
    return int(largest(peak, options.device))


def seconds_of(training, steps, options):
    dist.barrier()
    return largest(training.seconds_of(steps), options.device)


def train(rank, options):
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    join(rank, options)
    size = dict(SIZES[options.size])
    size["batch"] = options.rows or size["batch"]
    training = torch_peer.Training(options, size)
    parameters = sum(weight.numel() for weight in training.model.parameters())
    divided(training, options)
    training.seconds_of(torch_peer.FEWEST_WARM_UP_STEPS)
    first_steps_ended = time.time()
    of_step = seconds_of(training, 3, options) / 3
    start_peak = peak_bytes(options)
    if options.device == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    steps = max(1, math.ceil(options.window_seconds / of_step))
    tokens = options.gpus * size["batch"] * size["seq"]
    windows = [tokens * steps / seconds_of(training, steps, options) for _ in range(options.windows)]
    peak = peak_bytes(options)
    if rank == 0:
        speed = statistics.median(windows)
        print(json.dumps({
            "size": size, "canon": options.canon, "kind": options.kind, "gpus": options.gpus, "parameters": parameters,
            "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU", "torch": torch.__version__,
            "windows": windows, "window_steps": steps, "tokens_per_second": speed, "step_seconds": tokens / speed,
            "first_step_ended": first_steps_ended, "peak_memory_bytes": peak,
            "start_peak_memory_bytes": max(peak, start_peak)}), flush=True)
    dist.destroy_process_group()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="medium", choices=SIZES)
    parser.add_argument("--kind", default="ddp", choices=["ddp", "fsdp"])
    parser.add_argument("--gpus", type=int, default=2, metavar="N", help="processes, each on a GPU (2)")
    parser.add_argument("--canon", default="", metavar="SET", help="letters of ABCD; default: none")
    parser.add_argument("--canon-form", default="shift", choices=["shift", "conv", *torch_peer.KERNEL_FORMS])
    parser.add_argument("--rows", type=int, help="of each GPU, instead of the size's own")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window-seconds", type=float, default=1.0, help="at least about so long (1)")
    options = parser.parse_args()
    if options.device == "cpu" and options.kind == "fsdp":
        parser.error("--kind fsdp is for GPUs")
    if options.device == "cuda" and torch.cuda.device_count() < options.gpus:
        sys.exit(f"torch_peer_gpus: torch sees {torch.cuda.device_count()} GPUs, not {options.gpus}")
    if options.device == "cpu":
        torch.set_num_threads(1)
    options.precision = "autocast" if options.device == "cuda" else "float32"
    options.nope, options.graph, options.compile = False, False, "none"
    options.port = free_port()
    return options


if __name__ == "__main__":
    chosen = parse()
    multiprocessing.spawn(train, (chosen,), nprocs=chosen.gpus)
