"""One run by several processes: whichever of them is killed, stopped, or runs out of memory or of room, nothing is
lost, nothing hangs, and every loss stays the same on any number of processes."""
import json
import os
import random
import resource
import signal
import time
from collections import Counter
from pathlib import Path

from .kill import is_gone, structure_of
from .progress import Progress
from .runs import COMPLETED, HUNG_AFTER, STORAGE, Forge, check, same_as, send, wait_for

STEPS = 240
SETTINGS = {"train.max_steps": STEPS, "train.checkpoint_every": 20, "train.gradient_slots": 4, "train.batch_size": 4,
            "model.hidden_size": 64, "model.mlp.intermediate_size": 96}  # so that all of four own some weights
COUNTS = (1, 2, 4)
LONGEST_WAIT = 3.0  # seconds from the start of a run to a blow at a random moment


def workers_of(run):
    """Process ids of the run's workers by rank, as far as they are alive."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if os.readlink(folder / "cwd") != str(run.folder):
                continue
            if not (folder / "cmdline").read_bytes().split(b"\0")[0].endswith(b"forge-worker-libtorch"):
                continue
            words = dict(word.split(b"=", 1) for word in (folder / "environ").read_bytes().split(b"\0") if b"=" in word)
        except OSError:
            continue
        found[int(words.get(b"FORGE_RANK", b"0"))] = int(folder.name)
    return found


class Blows:
    def __init__(self, forge, folder, straight, seed, progress):
        self.forge = Forge(forge.program, Path(folder, "struck"), forge.cache)
        self.straight = straight
        self.generator = random.Random(seed)
        self.kills = Counter()
        self.changes = self.within_save = self.runs = 0
        self.progress = progress

    def launch(self, count):
        return self.forge.launch("text", {**SETTINGS, "parallel.processes": count})

    def wait_for_moment(self, run, process, in_save):
        """A random moment, or one at which a checkpoint is being written; false where the run was over first."""
        deadline = time.monotonic() + (60 if in_save else self.generator.uniform(0, LONGEST_WAIT))
        saves = self.generator.randrange(1, 6)  # that are let through
        seen = set()
        while time.monotonic() < deadline and process.poll() is None:
            if in_save:
                now = set(run.unfinished())
                seen |= now
                if now and len(seen) >= saves:
                    return True
            time.sleep(0.001)
        return process.poll() is None

    def kill_some(self, run, count, in_save):
        """Kills some of the processes, lets the supervisor do what it does for a while, and ends all that is left."""
        process = self.launch(count)
        try:
            if not self.wait_for_moment(run, process, in_save):
                check(process.returncode == COMPLETED, f"forge run ended with {process.returncode}: {process.stderr.read()}")
                return False
            before = run.acknowledged()
            within = bool(run.unfinished())
            workers = workers_of(run)
            chosen = self.generator.sample(sorted(workers), self.generator.randrange(1, len(workers) + 1)) if workers else []
            killed = [rank for rank in chosen if send(workers[rank], signal.SIGKILL)]
            for rank in killed:
                self.kills[f"rank {rank} of {count}"] += 1
                self.within_save += within
            time.sleep(self.generator.uniform(0, 1.0))  # in which the rest ends and another attempt begins
            self.end_all(run, process)
            check(run.acknowledged().startswith(before), f"{run.folder}: events were lost")
            for checkpoint in run.checkpoints():
                structure_of(checkpoint)
            return True
        finally:
            run.end_processes(process)

    def end_all(self, run, process):
        """Kills forge, the supervisor and every worker."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[1:3] == [b"supervise", str(run.folder).encode()]:
                    send(int(folder.name), signal.SIGKILL)
        send(process.pid, signal.SIGKILL)
        process.wait()
        wait_for(lambda: not workers_of(run), "the workers to go with their supervisor")

    def one_run(self, most, within_save):
        """Strikes one run, each time with another number of processes, until it is done."""
        run = self.forge.run_at(self.straight.folder.name)
        count = self.generator.choice(COUNTS)
        while sum(self.kills.values()) < most or self.within_save < within_save:
            if not self.kill_some(run, count, self.within_save < within_save):
                break
            self.progress.show(sum(self.kills.values()), f"{self.within_save} within a save")
            self.changes += (following := self.generator.choice(COUNTS)) != count
            count = following
        if not run.is_done():
            process = self.launch(count)
            _, prose = process.communicate(timeout=300)
            check(process.returncode == COMPLETED, f"{run.folder} ended with {process.returncode}: {prose}")
        check(run.unfinished() == [], f"{run.folder}: {run.unfinished()} was left behind")
        same_as(self.straight, run)
        self.runs += 1
        run.remove()

    # What else befalls one of two processes.

    def begun(self, name):
        run = self.forge.run_at(self.straight.folder.name)
        process = self.launch(2)
        wait_for(lambda: run.checkpoints() or process.poll() is not None, f"the first checkpoint ({name})")
        workers = wait_for(lambda: (found := workers_of(run)) and len(found) == 2 and found, "both processes")
        return run, process, workers

    def end_of(self, run, process, expected, words):
        _, prose = process.communicate(timeout=300)
        check(process.returncode == expected, f"{run.folder} ended with {process.returncode} and not {expected}: {prose}")
        told = json.dumps(run.events()) + prose
        check(words in told, f"{run.folder}: '{words}' is not told: {prose}")

    def stopped(self):
        """SIGSTOP: the run goes on once its patience has ended, and names the process."""
        for rank in (0, 1):
            run, process, workers = self.begun("stop")
            send(workers[rank], signal.SIGSTOP)
            wait_for(lambda: is_gone(workers[rank]), "the end of the stopped process", 20 * HUNG_AFTER)
            self.end_of(run, process, COMPLETED, f"process {rank}")
            same_as(self.straight, run)
            run.remove()

    def without_memory(self):
        """Memory that one process cannot get, not even for a thread: the run goes on or fails in words, and is the same
        when done again."""
        run = self.forge.run_at(self.straight.folder.name)
        process = self.launch(2)
        workers = wait_for(lambda: (found := workers_of(run)) and len(found) == 2 and found, "both processes")
        # Before the first save, whose thread would leave its memory for the later ones.
        wait_for(lambda: any(event["event"] == "train" for event in run.events()) or process.poll() is not None, "the first step")
        used = int(Path(f"/proc/{workers[1]}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(workers[1], resource.RLIMIT_AS, (used, used))
        _, prose = process.communicate(timeout=300)
        ended = process.returncode
        if ended != COMPLETED:
            check("emory" in json.dumps(run.events()) + prose, f"{run.folder} ended with {ended}: {prose}")
            _, prose = (again := self.launch(2)).communicate(timeout=300)
            check(again.returncode == COMPLETED, f"{run.folder} ended with {again.returncode}: {prose}")
        same_as(self.straight, run)
        run.remove()

    def without_room(self):
        """A file that one process cannot write: an error that says so, and the same losses when there is room."""
        run, process, workers = self.begun("room")
        resource.prlimit(workers[1], resource.RLIMIT_FSIZE, (4096, 4096))
        self.end_of(run, process, STORAGE, "could not be written")
        again = self.launch(4)
        self.end_of(run, again, COMPLETED, "")
        same_as(self.straight, run)
        run.remove()


def prove(forge, folder, count, within_save, seed):
    straight = forge.train("text", SETTINGS)
    with Progress("processes", count) as progress:
        blows = Blows(forge, folder, straight, seed, progress)
        while sum(blows.kills.values()) < count or blows.within_save < within_save:
            blows.one_run(count, within_save)
    blows.stopped()
    blows.without_memory()
    blows.without_room()
    straight.remove()
    kills = ", ".join(f"{number} of {what}" for what, number in sorted(blows.kills.items()))
    print(f"processes: {sum(blows.kills.values())} killed ({kills}), {blows.within_save} of them while a checkpoint was "
          f"being written, in {blows.runs} runs that changed their number of processes {blows.changes} times; one stopped, "
          "one without memory, one without room: no event lost, nothing torn, nothing hung, every loss and the last "
          "weights bit-equal to those of one process")
