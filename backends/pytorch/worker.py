"""A worker of forge in plain PyTorch: reads a request on stdin, writes events on stdout.

Needs torch 1.13 or later and numpy; nothing else. Where the Python that runs it has no torch, the python3
of the PATH takes its place; the environment variable FORGE_PYTHON names another one.
"""
import errno
import importlib.util
import os
import platform
import shutil
import signal
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
if HERE not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, HERE)

import protocol
from protocol import Diverged, TrainingFailed, WrongRequest

VERSION = "1.0"
NUMERICS_VERSION = 3
OWN_BLOCKS = "blocks/*.py"  # stands for the names of the user's own
JOBS = ["describe", "describe_blocks", "train", "evaluate", "generate", "bench"]
SUPPORTED = {
    "model.layers": ["attention", "gla5", "gdn2", "mamba2", OWN_BLOCKS],
    "data.source": ["toy_stories", "text", "jsonl"],
    "train.precision": ["float32", "float64", "bfloat16"],
    "train.bfloat16_weights": ["none", "master_copies"],
    "train.document_mask": [False],
    "train.gradient_slots": [1],
    "train.initial_weights": [""],
    "optimizer.type": ["adamw", "muon", "lion", "sgd"],
    "schedule.type": ["infinite_lr", "cosine", "linear", "inv_sqrt", "wsd", "constant"],
}


def cores():
    return len(os.sched_getaffinity(0))


def require_threads(count):
    """Raises where so many threads cannot be started at once: torch waits for its own for ever."""
    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait, daemon=True) for _ in range(count)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError as problem:
        raise TrainingFailed(f"cannot start {count} threads: {problem}",
                             hint="'ulimit -u' limits a user's processes and threads: "
                             "end some, or raise it") from None
    finally:
        is_over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def choose_device(request):
    threads = request.get("threads", 0) or cores()
    require_threads(max(threads, os.cpu_count() or 1) + threads)
    import torch
    torch.set_num_threads(threads)
    wanted = request.get("device", "auto")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    kind = wanted.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise WrongRequest(f"'{wanted}' is no device", hint="auto, cpu, cuda or cuda:N")
    if kind == "cuda":
        index = int(wanted.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            raise WrongRequest(f"no device '{wanted}' here", hint="--device cpu")
        return torch.device("cuda", index)
    return torch.device("cpu")


def processor_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def describe(device, events):
    import numpy
    import torch
    gpus = torch.cuda.device_count()
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    events.send(
        "environment", device_type=device.type,
        device_name=gpu.name if gpu else processor_name(), threads=torch.get_num_threads(),
        memory_bytes=gpu.total_memory if gpu else
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        devices=["cpu"] + [f"cuda:{index}" for index in range(gpus)],
        libraries={"python": platform.python_version(), "torch": torch.__version__,
                   "numpy": numpy.__version__})


def refuse_unsupported(experiment):
    """forge asks before it starts anything; who starts this by hand hears it here."""
    for key, values in SUPPORTED.items():
        value = experiment
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:  # left out: it has its default
            continue
        given = value if isinstance(value, list) else [value]
        # An element of model.layers with settings of its own names its mixer.
        given = [one["mixer"] if isinstance(one, dict) else one for one in given]
        own = experiment["model"].get("blocks", {}) if key == "model.layers" else {}
        wrong = [one for one in given if one not in values and one not in own]
        if wrong:
            raise WrongRequest(f"this backend cannot do {key}: {wrong[0]}", key,
                               "it can do " + ", ".join(map(str, values)))


def evaluate(request, device, events):
    import training
    from rows import Rows
    experiment = request["experiment"]
    rows = Rows(request["evaluation_tokens"], experiment, False)
    model = training.build(experiment, device)
    training.load_start_weights(model, request)
    began = time.monotonic()

    def show(phase, fraction):
        events.send("progress", step=0, phase=phase, fraction=fraction)
    loss, tokens, _, _ = training.evaluate(
        model, rows, experiment["train"]["eval_batch_size"], device, show)
    events.send("result", values={"loss": loss, "tokens": tokens,
                                  "seconds": time.monotonic() - began})
    return protocol.DONE


def generate(request, device, events, asked):
    import generate as generation
    import training
    model = training.build(request["experiment"], device)
    training.load_start_weights(model, request)
    vocab_size = request["experiment"]["model"]["vocab_size"]
    events.send("result", values=generation.generate(
        model, request["generation"], device, vocab_size, events, asked.stop.is_set))
    return protocol.DONE


def describe_blocks(request, events):
    import training
    import trial
    events.send("result", values={"blocks": trial.describe(request["experiment"], training.DTYPES)})
    return protocol.DONE


def choose_determinism(train, device):
    """Before the first product on the device. Without a wish a CPU computes so, since it costs nothing."""
    import torch
    wanted = train["deterministic"]
    wanted = device.type == "cpu" if wanted is None else bool(wanted)
    train["deterministic"] = wanted
    if wanted and device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(wanted)
    if hasattr(torch.utils, "deterministic"):  # new memory need not be filled: nothing reads it
        torch.utils.deterministic.fill_uninitialized_memory = False


def use_own_stream(device):
    """The default stream of a GPU cannot be recorded."""
    import torch
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.set_stream(torch.cuda.Stream(device))


def bench(request, device, events):
    import bench as benchmark
    refuse_unsupported(request["experiment"])
    choose_determinism(request["experiment"]["train"], device)
    use_own_stream(device)
    benchmark.bench(request, device, events)
    return protocol.DONE


def train(request, device, events, asked):
    import training
    refuse_unsupported(request["experiment"])
    choose_determinism(request["experiment"]["train"], device)
    use_own_stream(device)
    completed = training.Training(request, device, events, asked).run()
    return protocol.DONE if completed else protocol.STOPPED


class Asked:
    """What signals ask for, looked at between steps."""

    def __init__(self):
        self.stop, self.save = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.stop.set())
        signal.signal(signal.SIGUSR1, lambda *_: self.save.set())


def serve(events, asked):
    events.send("hello", protocol=protocol.VERSION, backend="pytorch", backend_version=VERSION,
                numerics_version=NUMERICS_VERSION, saves_on_request=True)
    request = protocol.read_request()
    job = request["job"]
    if job not in JOBS:
        raise WrongRequest(f"this backend cannot do the job '{job}'", hint="it does " + ", ".join(JOBS))
    device = choose_device(request)
    describe(device, events)
    if job == "describe":
        events.send("supports", jobs=JOBS, config=SUPPORTED)
        return protocol.DONE
    if job == "describe_blocks":
        return describe_blocks(request, events)
    if job == "generate":
        return generate(request, device, events, asked)
    if job == "bench":
        return bench(request, device, events)
    if job == "evaluate":
        return evaluate(request, device, events)
    return train(request, device, events, asked)


def exit_status_of(problem):
    """A full or failing disk, or a limit on the size of files, is no fault of the training.
    A library may have wrapped it: Torch raises an error of its own while it handles this one."""
    of_storage = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
    seen = []  # a chain of causes may be a circle
    while problem is not None and problem not in seen:
        if isinstance(problem, OSError) and problem.errno in of_storage:
            return protocol.STORAGE
        seen.append(problem)
        problem = problem.__cause__ if problem.__suppress_context__ else problem.__context__
    return protocol.FAILED


def described_problem(problem):
    """What went wrong, the config key of it and a hint: of a user's own block the lines of its file."""
    for library in ("torch", "numpy"):
        if isinstance(problem, ModuleNotFoundError) and f"'{library}'" in str(problem):
            return (f"the backend pytorch needs {library}, which {sys.executable} does not have", "backend",
                    f"on Debian: apt install python3-{library}; or name a Python that has it: FORGE_PYTHON=python3")
    own_blocks = sys.modules.get("own_blocks")  # not there where torch is not
    name = own_blocks.name_of_problem(problem) if own_blocks else ""
    if not name:
        return f"{type(problem).__name__}: {problem}", "", ""
    failure = own_blocks.failure(name, "training", problem)
    return str(failure), failure.field, failure.hint


def use_other_python():
    """Goes on as another Python where FORGE_PYTHON asks for it, or where this one has no torch."""
    wanted = os.environ.get("FORGE_PYTHON", "")
    if not wanted and importlib.util.find_spec("torch") is None:
        wanted = shutil.which("python3") or ""
    if wanted and os.environ.get("FORGE_PYTHON_CHOSEN") != wanted:
        os.environ["FORGE_PYTHON_CHOSEN"] = wanted
        try:
            os.execvp(wanted, [wanted, "-B", *sys.argv])
        except OSError as problem:
            print(f"note: FORGE_PYTHON is {wanted}: {problem}", file=sys.stderr)


def main():
    events = protocol.Events()
    asked = Asked()
    try:
        return serve(events, asked)
    except BrokenPipeError:
        return protocol.FAILED  # nobody listens
    except WrongRequest as problem:
        events.send("failed", message=str(problem), field=problem.field, hint=problem.hint)
        return protocol.WRONG_REQUEST
    except TrainingFailed as problem:
        events.send("failed", message=str(problem), field=problem.field, hint=problem.hint,
                    diverged=isinstance(problem, Diverged))
        return protocol.FAILED
    except KeyError as problem:
        events.send("failed", message=f"the request lacks {problem}", field="", hint="")
        traceback.print_exc()
        return protocol.WRONG_REQUEST
    except Exception as problem:  # whatever it is, forge is told
        traceback.print_exc()
        message, field, hint = described_problem(problem)
        events.send("failed", message=message, field=field, hint=hint)
        return exit_status_of(problem)


if __name__ == "__main__":
    use_other_python()
    sys.exit(main())
