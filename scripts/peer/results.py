"""Stored figures of forge and its PyTorch peer, and what they are held to."""
import json
import statistics
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent.parent
TARGETS = Path(__file__).resolve().parent / "targets.json"
OF_THIS_MACHINE = ("--results", "--forge", "--python")

# Of a record: larger is better, but for memory (a ratio to the peer's) and start (seconds).
MEASURES = ("speed", "against_llama", "memory", "start")
# Of several GPUs: forge's speed over that of one GPU with as many rows, over PyTorch's, the share of what is sent
# that is hidden behind computation, and GiB of a GPU.
MEASURES_OF_GPUS = ("scaling", "gpus_speed", "hidden", "gpus_memory")
SMALLER_IS_BETTER = ("memory", "start", "gpus_memory")


class Target(NamedTuple):
    must: Optional[float] = None
    aim: Optional[float] = None


def load_targets(path=TARGETS):
    return json.loads(Path(path).read_text())


def matching(entries, record, measure):
    """The first entry that is for a record's measure; one without a precision is for all of them."""
    for entry in entries:
        same = all(entry[key] == record[key] for key in ("device_type", "size", "case"))
        precision = entry.get("precision", record["precision"])
        if same and entry["measure"] == measure and precision == record["precision"]:
            return entry
    return None


def target_of(targets, record, measure):
    """What a record's measure is held to."""
    target = matching(targets, record, measure) or {}
    return Target(target.get("must"), target.get("aim"))


def reaches(measure, value, bound):
    return value <= bound if measure in SMALLER_IS_BETTER else value >= bound


def median_speed(side):
    """Of the windows of all rounds."""
    return statistics.median(side["windows"])


def measures_of(record, llama=None):
    """The measures that a record has; `llama` is the record of the plain Llama of the same call."""
    forge, peer = record["forge"], record["peer"]
    values = {"speed": median_speed(forge) / median_speed(peer),
              "memory": forge["peak_memory_bytes"] / peer["peak_memory_bytes"]}
    if llama is not None and record["case"] != "llama":
        values["against_llama"] = median_speed(forge) / median_speed(llama["forge"])
    if start_of(forge) is not None:
        values["start"] = start_of(forge)
    return values


def measures_of_gpus(record):
    """The measures of a record of several GPUs."""
    forge, peer = record["forge"], record["peer"]
    values = {"scaling": median_speed(forge) / median_speed(record["alone"]),
              "gpus_memory": forge["peak_memory_bytes"] / 2**30}
    if peer:
        values["gpus_speed"] = median_speed(forge) / median_speed(peer)
    exchange = forge.get("exchange")
    if exchange and exchange["alone"] > 0:
        values["hidden"] = min(1, max(0, 1 - exchange["visible"] / exchange["alone"]))
    return values


def start_of(side, kind="cold"):
    """Median seconds to the first step: with caches that are empty, or that an earlier process filled. Where
    nothing is compiled every start is warm. Records of before November 24, 2026 have one figure."""
    if not isinstance(side.get("starts"), dict):
        return side.get("start_seconds")
    seconds = side["starts"].get(kind) or side["starts"].get("warm")
    return statistics.median(seconds) if seconds else None


def llama_of(record, records):
    """The plain Llama that was measured in the same call."""
    for other in records:
        same = all(other.get(key) == record.get(key) for key in ("date", "device", "size", "precision", "weights"))
        if same and other["case"] == "llama":
            return other
    return None


def setting_text(setting):
    """What a setting says, e.g. "bf16, reduce-overhead"."""
    words = [key if value is True else value for key, value in setting.items() if value not in ("", "none", False)]
    return ", ".join(words)


def provenance(script, positional=()):
    """When, how and of what revision figures are made by a script of this repository. Of the command line
    what is of this machine alone is left out. The positional arguments come first: an option that takes
    several values would take them, too."""
    words, skipped, positional = [script, *positional], False, list(positional)
    for word in sys.argv[1:]:
        if word in positional:  # once: an option may have the same value
            positional.remove(word)
            continue
        if skipped or word in OF_THIS_MACHINE:
            skipped = not skipped
        elif not word.startswith(tuple(option + "=" for option in OF_THIS_MACHINE)):
            words.append(word)
    return {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "command": " ".join(words),
            "revision": revision()}


def revision():
    """Of the repository, with -dirty where files are changed other than those that measuring writes; empty
    where it is no repository."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks", ":!BENCHMARKS.md")
    return git("describe", "--always") + ("-dirty" if changed else "")


def is_clean(name):
    return bool(name) and not name.endswith("-dirty")
