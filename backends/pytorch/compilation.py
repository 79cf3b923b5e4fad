"""Whether a step is compiled by torch.compile, and what is said where it is not."""
import contextlib
import os
import threading
import time

import torch

from protocol import WrongRequest

VARIABLE = "FORGE_PYTORCH_COMPILE"
CHOICES = ("auto", "true", "max-autotune", "false")
SIGN_SECONDS = 0.5
LONGEST_COMPILATION = 1200  # seconds, after which no sign of life is given any more


def wanted():
    value = os.environ.get(VARIABLE, "") or "auto"
    if value not in CHOICES:
        raise WrongRequest(f"{VARIABLE} is '{value}'", hint="it is one of " + ", ".join(CHOICES))
    return value


def why_not(choice, device, deterministic):
    """Why a step is not compiled; "" where it is, None where nobody expects it: on a CPU compiling takes
    longer than it saves in short runs."""
    if choice == "auto" and device.type != "cuda":
        return None
    if choice == "false":
        return f"{VARIABLE} is false"
    if not hasattr(torch, "compile"):
        return f"Torch {torch.__version__} has no torch.compile"
    if device.type == "cuda":
        try:
            import triton  # noqa: F401  (what makes kernels of compiled code)
        except ImportError as problem:
            return str(problem)
    if choice == "auto" and deterministic:
        return ("with train.deterministic, since another process may compile sums in another order; "
                f"{VARIABLE}=true compiles")
    return ""


def compiled(function, device, deterministic, say):
    """The function compiled, or None, with a line for the log that says why not."""
    choice = wanted()
    reason = why_not(choice, device, deterministic)
    if reason is None:
        return None
    if reason:
        say(f"note: steps are not compiled: {reason}")
        return None
    if deterministic:
        forbid_choices_by_time()
    # The step is recorded as a whole, so no part of it needs a graph of its own.
    mode = "max-autotune-no-cudagraphs" if choice == "max-autotune" else "default"
    return torch.compile(function, dynamic=False, mode=mode)


def forbid_choices_by_time():
    """Kernels that were chosen by measuring may differ between two processes."""
    try:
        import torch._inductor.config as inductor
    except ImportError:
        return
    if hasattr(inductor, "deterministic"):
        inductor.deterministic = True


def one_line(problem, most=300):
    said = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = f"{type(problem).__name__}: {said[0] if said else ''}"
    return text if len(text) <= most else text[:most] + " …"


@contextlib.contextmanager
def signs_of_life(show):
    """Calls show("compile", fraction) now and then, while a compiler does not return."""
    if show is None:
        yield
        return
    done, began = threading.Event(), time.monotonic()

    def run():
        while not done.wait(SIGN_SECONDS):
            fraction = (time.monotonic() - began) / LONGEST_COMPILATION
            if fraction >= 1:
                return
            show("compile", fraction)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
