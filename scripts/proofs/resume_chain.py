"""A run that is stopped and resumed again and again has the losses of one that never was."""
import random
import signal

from .progress import Progress
from .runs import COMPLETED, STOPPED, SUSPENDED, check, same_as, send, suspend, wait_for


def worker_of(run):
    return run.attempts()[-1]["pid"]


def stop_at(run, step, suspends):
    """Supervises until a step is done, then asks the worker to save and leave; its supervisor is suspended before where
    asked. Whether it was stopped."""
    process = run.forge.supervise(run)
    before = len(run.attempts())
    try:
        wait_for(lambda: process.poll() is not None or len(run.attempts()) > before, "the worker")
        wait_for(lambda: process.poll() is not None or run.last_step() >= step, f"step {step}")
        if process.poll() is None:
            if suspends:
                suspend([process.pid, worker_of(run)])
            send(worker_of(run), signal.SIGTERM)  # it may just have finished
        code = process.wait(timeout=300)
    finally:
        run.end_processes(process)
    check(code in (COMPLETED, STOPPED), f"{run.folder} ended with {code}: {run.events()[-1]}")
    return code == STOPPED


def prove(forge, kinds, count, seed):
    generator = random.Random(seed)
    # A stop takes effect some steps after it was asked for: many, where a machine is busy with other work.
    steps = 250 * (count + 2)
    for kind in kinds:
        straight = forge.train(kind, {"train.max_steps": steps})
        run = straight.fresh_copy("chain")
        places = set()
        suspended = 0
        with Progress(f"resume-chain, {kind}", count) as progress:
            for resumed in range(count):
                # Anywhere but at a checkpoint: a stop in the middle of a window of metrics is the harder one.
                reached = run.last_step() if resumed > 0 else 0
                suspends = generator.random() < SUSPENDED
                suspended += suspends
                check(stop_at(run, reached + generator.randrange(1, 60), suspends),
                      f"{run.folder} was over after {resumed} stops: its steps are too few for this machine")
                places.add(run.events()[-2]["step"] % 7)
                progress.show(resumed + 1)
        run.supervise_to_end()
        check(len(run.attempts()) == count + 1, f"{len(run.attempts())} attempts instead of {count + 1}")
        same_as(straight, run)
        print(f"resume-chain, {kind}: {count} resumes in {steps} steps, at {len(places)} of 7 places in a window, "
              f"{suspended} after both processes were suspended: "
              f"every loss, norm and evaluation and the last weights bit-equal")
        run.remove()
        straight.remove()
