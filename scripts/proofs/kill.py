"""kill -9 at any moment: nothing acknowledged is lost, nothing torn is accepted, every loss stays the same."""
import json
import os
import random
import signal
import time

from .runs import COMPLETED, check, same_as, wait_for

STEPS = 1500
CHECKPOINT_EVERY = 30


def structure_of(checkpoint):
    """What a folder under its final name must look like, found out without forge."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())["manifest"]
    check(manifest["state"]["step"] == int(checkpoint.name), f"{checkpoint} is of step {manifest['state']['step']}")
    for name, entry in manifest["files"].items():
        with open(checkpoint / name, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            end = max((tensor["data_offsets"][1] for key, tensor in header.items() if key != "__metadata__"), default=0)
            size = file.seek(0, os.SEEK_END)
        check(size == entry["bytes"] == 8 + length + end, f"{checkpoint / name} is torn: {size} bytes")


class Killer:
    def __init__(self, forge, straight, seed):
        self.forge = forge
        self.straight = straight
        self.generator = random.Random(seed)
        self.kills = self.within_save = self.rounds = 0

    def wait_for_moment(self, run, process, in_save, deadline):
        """A random moment, or one at which a checkpoint is being written; false where the run was over first."""
        if in_save:
            patience = self.generator.randrange(1, 12)  # saves that are let through
            seen = set()
            while process.poll() is None:
                seen.update(run.unfinished())
                if len(seen) >= patience and run.unfinished():
                    return True
            return False
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return False
            time.sleep(0.0005)
        return True

    def strike(self, run, target, in_save):
        """Supervises the run and kills; false where it was over before."""
        attempts = len(run.attempts())
        process = self.forge.supervise(run)
        try:
            wait_for(lambda: process.poll() is not None or len(run.attempts()) > attempts, "the worker")
            worker = run.attempts()[-1]["pid"]
            deadline = time.monotonic() + self.generator.uniform(0, 1.2)
            if not self.wait_for_moment(run, process, in_save, deadline):
                check(process.wait() == COMPLETED, f"{run.folder}: {run.events()[-1]}")
                return False
            before = run.acknowledged()
            if target in ("worker", "both"):
                # The supervisor would start another: that is part of what is tested, but one at a time.
                try:
                    os.kill(worker, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if target == "worker":
                wait_for(lambda: process.poll() is not None or len(run.attempts()) > attempts + 1, "a retry")
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
            wait_for(lambda: self.is_gone(run.attempts()[-1]["pid"]), "the worker's end")
        finally:
            run.end_processes(process)
        check(run.acknowledged().startswith(before), f"{run.folder}: events were lost")
        for checkpoint in run.checkpoints():
            structure_of(checkpoint)
        acknowledged = [json.loads(line)["step"] for line in before.splitlines() if b'"event":"checkpoint"' in line]
        newest = int(run.checkpoints()[-1].name) if run.checkpoints() else 0
        check(newest >= max(acknowledged, default=0), f"{run.folder}: an acknowledged checkpoint is gone")
        self.kills += 1
        self.within_save += bool(run.unfinished())
        return True

    @staticmethod
    def is_gone(pid):
        try:
            return open(f"/proc/{pid}/stat").read().split(") ")[1].startswith("Z")
        except FileNotFoundError:
            return True

    def one_run(self, count, within_save, targets):
        """Kills one run until it gets to its end or enough was killed, then lets it end."""
        run = self.straight.fresh_copy("killed")
        while self.kills < count or self.within_save < within_save:
            in_save = self.within_save < within_save
            if not self.strike(run, self.generator.choice(targets), in_save):
                break
        else:
            run.supervise_to_end()
        check(not any(attempt["damaged"] for attempt in run.attempts()), f"{run.folder}: a torn checkpoint had its name")
        check(run.unfinished() == [], f"{run.folder}: {run.unfinished()} was left behind")
        same_as(self.straight, run)
        self.rounds += 1
        run.remove()


def prove(forge, count, within_save, targets, seed):
    straight = forge.train("text", {"train.max_steps": STEPS, "train.checkpoint_every": CHECKPOINT_EVERY})
    killer = Killer(forge, straight, seed)
    while killer.kills < count or killer.within_save < within_save:
        killer.one_run(count, within_save, targets)
    straight.remove()
    print(f"kill: {killer.kills} of {' or '.join(targets)}, {killer.within_save} while a checkpoint was being written, "
          f"in {killer.rounds} runs: no event lost, nothing torn, every loss and the last weights bit-equal")
