"""Programs that are measured, and what they print."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Failure(Exception):
    """A program that could not be measured."""


def output_of(command, limit=None, **options):
    """Standard output of a command that must succeed, within `limit` seconds where there is one."""
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          **options) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it started
            raise Failure(f"not done within {limit:.0f} s") from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        end = "\n".join(errors.strip().splitlines()[-8:])
        raise Failure(f"'{' '.join(words)}' ended with {process.returncode}:\n{end}")
    return output


def last_json(text):
    """The last JSON object of some lines."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise Failure("it printed no figures")


def with_torch():
    """A Python that has torch."""
    for python in ("python3", "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    sys.exit("no python3 here has torch; --python names one that has")


def forge_program(device):
    built = ROOT / "build" / "cuda" / "forge"
    return str(built if device == "cuda" and built.exists() else ROOT / "scripts" / "forge")
