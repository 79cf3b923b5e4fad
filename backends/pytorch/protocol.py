"""One request in, one JSON event a line out: docs/PROTOCOL.md."""
import json
import math
import os
import sys
import threading

VERSION = 1
DONE, FAILED, WRONG_REQUEST, STOPPED, STORAGE = 0, 1, 2, 3, 4


class WrongRequest(Exception):
    """What was asked for can never be done as it is."""

    def __init__(self, message, field="", hint=""):
        super().__init__(message)
        self.field, self.hint = field, hint


class TrainingFailed(Exception):
    """What was begun cannot go on."""

    def __init__(self, message, field="", hint=""):
        super().__init__(message)
        self.field, self.hint = field, hint


class Diverged(TrainingFailed):
    """The numbers of training no longer make sense: the same run would come to that again."""


def as_json(value):
    """JSON has no word for numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    return value


class Events:
    """Writes to what was stdout; stdout itself becomes stderr, where a library's print is welcome."""

    def __init__(self):
        self.stream = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
        self.lock = threading.Lock()

    def send(self, event, **fields):
        line = json.dumps({"event": event, **as_json(fields)}) + "\n"
        with self.lock:
            self.stream.write(line)
            self.stream.flush()


def read_request():
    line = sys.stdin.buffer.readline()
    try:
        request = json.loads(line)
    except ValueError as problem:
        raise WrongRequest(f"the request is no JSON: {problem}") from None
    if not isinstance(request, dict) or not isinstance(request.get("job"), str):
        raise WrongRequest("the request is no JSON object with a job")
    return request
