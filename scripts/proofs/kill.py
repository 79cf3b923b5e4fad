"""kill -9 at any moment: nothing acknowledged is lost, nothing torn is accepted, every loss stays the same."""
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from .progress import Progress
from .runs import COMPLETED, SUSPENDED, Forge, check, same_as, send, suspend, wait_for

STEPS = 1500
SETTINGS = {"train.max_steps": STEPS, "train.checkpoint_every": 30}
TARGETS = {  # what is killed at once
    "worker": {"worker"},
    "supervisor": {"supervisor"},
    "worker and supervisor": {"worker", "supervisor"},
    "forge": {"forge"},
    "forge and worker": {"forge", "worker"},
    "all three": {"forge", "worker", "supervisor"},
}
LONGEST_WAIT = 2.5  # seconds from the start of a process to its end at a random moment


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


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except FileNotFoundError:
        return True


def kill(pid):
    """False where there is none to kill any more."""
    return send(pid, signal.SIGKILL)


def processes_of(run):
    """Ids of the run's supervisor and its worker, as far as they are alive."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            here = os.readlink(folder / "cwd")
        except OSError:
            continue
        if words[1:3] == [b"supervise", str(run.folder).encode()]:
            found["supervisor"] = int(folder.name)
        elif words[0].endswith(b"forge-worker-libtorch") and here == str(run.folder):
            found["worker"] = int(folder.name)
    return found


class Killer:
    def __init__(self, forge, folder, straight, seed, progress):
        self.forge = Forge(forge.program, Path(folder, "killed"), forge.cache)
        self.straight = straight
        self.generator = random.Random(seed)
        self.kills = Counter()
        self.left_behind = set()
        self.victims = {}
        self.within_save = self.suspended = self.rounds = 0
        self.progress = progress

    def wait_for_moment(self, run, process, in_save):
        """A random moment, or one at which a checkpoint is being written; false where the run was over first."""
        if in_save:
            patience = self.generator.randrange(2, 12)  # saves that are let through
            seen = set()
            while process.poll() is None:
                now = self.being_written(run)
                if now and not seen:
                    self.victims = processes_of(run)  # looking for them takes longer than a save
                seen |= now
                if len(seen) >= patience and now:
                    return True
            return False
        deadline = time.monotonic() + self.generator.uniform(0, LONGEST_WAIT)
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return False
            time.sleep(0.0005)
        return True

    def being_written(self, run):
        """Folders of checkpoints on their way in or out, without what earlier kills left behind."""
        return set(run.unfinished()) - self.left_behind

    def strike(self, run, target, in_save):
        """Runs and kills; false where the run was over before."""
        self.left_behind = set(run.unfinished())
        self.victims = {}
        process = self.forge.launch("text", SETTINGS) if "forge" in TARGETS[target] else self.forge.supervise(run)
        try:
            if self.generator.random() < SUSPENDED:
                self.suspend_supervisor(run, process)
            if not self.wait_for_moment(run, process, in_save):
                check(process.wait() == COMPLETED, f"{run.folder}: {run.events()[-1:]}")
                return False
            return self.kill_now(run, process, target)
        finally:
            run.end_processes(process)

    def suspend_supervisor(self, run, process):
        """In half of the cases its worker, too, as where a whole machine sleeps."""
        wait_for(lambda: len(processes_of(run)) == 2 or process.poll() is not None, "the worker")
        found = processes_of(run)
        together = ["supervisor", "worker"] if self.generator.random() < 0.5 else ["supervisor"]
        if all(name in found for name in together):
            self.suspended += suspend([found[name] for name in together])

    def kill_now(self, run, process, target):
        victims = self.victims or processes_of(run)
        victims["forge" if "forge" in TARGETS[target] else "supervisor"] = process.pid
        before = run.acknowledged()
        killed = [name for name in sorted(TARGETS[target]) if name in victims and kill(victims[name])]
        in_save = bool(self.being_written(run))
        if "supervisor" in killed and "worker" in victims:
            wait_for(lambda: is_gone(victims["worker"]), "the worker to go with its supervisor")
        if killed == ["forge"] and "supervisor" in victims:
            check(not is_gone(victims["supervisor"]) or run.is_done(), "the supervisor went with forge")
        if killed == ["worker"]:
            time.sleep(self.generator.uniform(0, 0.5))  # the supervisor may start another one
        self.end_what_is_left(run, process)
        self.look_at(run, before)
        if killed:
            self.kills[" and ".join(killed)] += 1
            self.within_save += in_save
        return True

    @staticmethod
    def end_what_is_left(run, process):
        """Who was spared is killed, too: nothing goes on when the next one begins."""
        kill(process.pid)
        process.wait()
        while left := processes_of(run):
            for pid in left.values():
                kill(pid)
            time.sleep(0.001)

    @staticmethod
    def look_at(run, before):
        check(run.acknowledged().startswith(before), f"{run.folder}: events were lost")
        for checkpoint in run.checkpoints():
            structure_of(checkpoint)
        acknowledged = [json.loads(line)["step"] for line in before.splitlines() if b'"event":"checkpoint"' in line]
        newest = int(run.checkpoints()[-1].name) if run.checkpoints() else 0
        check(newest >= max(acknowledged, default=0), f"{run.folder}: an acknowledged checkpoint is gone")

    def one_run(self, count, within_save, targets):
        """Kills one run until it gets to its end or enough was killed, then lets it end."""
        run = self.straight.fresh_copy(self.straight.folder.name, self.forge)
        while self.is_lacking(count, within_save):
            in_save = self.within_save < within_save
            if not self.strike(run, self.generator.choice(targets), in_save):
                break
            self.progress.show(sum(self.kills.values()), f"{self.within_save} within a save")
        if not run.is_done():
            run.supervise_to_end()
        check(not any(attempt["damaged"] for attempt in run.attempts()), f"{run.folder}: a torn checkpoint had its name")
        check(run.unfinished() == [], f"{run.folder}: {run.unfinished()} was left behind")
        same_as(self.straight, run)
        self.rounds += 1
        run.remove()

    def is_lacking(self, count, within_save):
        return sum(self.kills.values()) < count or self.within_save < within_save


def prove(forge, folder, count, within_save, targets, seed):
    straight = forge.train("text", SETTINGS)
    with Progress("kill", count) as progress:
        killer = Killer(forge, folder, straight, seed, progress)
        while killer.is_lacking(count, within_save):
            killer.one_run(count, within_save, targets)
    straight.remove()
    kills = ", ".join(f"{number} of {what}" for what, number in sorted(killer.kills.items()))
    print(f"kill: {sum(killer.kills.values())} ({kills}), {killer.within_save} of them while a checkpoint was being "
          f"written, {killer.suspended} after the supervisor was suspended, in {killer.rounds} runs: no event lost, "
          "nothing torn, every loss and the last weights bit-equal")
