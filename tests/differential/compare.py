"""Runs one case on both sides and judges."""

import re
import signal

import oracle
import yaml_oracle

# What forge leaves out on purpose, seen in the original's text or in forge's message.
INCOMPARABLE_TEXT = re.compile(r" at 0x[0-9a-f]{6,}|<(function|built-in method|bound method|class) ")
# Of "cannot be sliced": Jinja folds such a slice of a constant to an undefined value, and refuses
# that of a variable; forge refuses both. Aliases that make a node contain itself it refuses too.
INCOMPARABLE_ERROR = re.compile(r"does not fit 64 bits|grows past 64 MiB|cannot be sliced|"
    "stands inside the node that it names")

SAME, DIFFERENT, INCOMPARABLE = "same", "different", "incomparable"


class Verdict:
    def __init__(self, kind, expected, actual):
        self.kind, self.expected, self.actual = kind, expected, actual

    @property
    def differs(self):
        return self.kind == DIFFERENT


def _give_up(*_):
    raise TimeoutError("the original takes longer than 5 s")


def original_answer(case):
    """Like forge's answer; what the original throws is {"error": …}."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(5)
    try:
        if case["kind"] == "render":
            return {"text": oracle.render(case)}
        if case["kind"] == "lines":
            return {"text": oracle.preprocess(case["text"])}
        if case["kind"] == "split":
            return {"parts": oracle.split_inline(case["text"])}
        return {"value": yaml_oracle.load(case["text"])}
    except Exception as error:  # whatever Python throws, forge has to refuse as well
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        signal.alarm(0)


def judge(case, program):
    expected, actual = original_answer(case), program.ask(case)
    if "crash" in actual:
        return Verdict(DIFFERENT, expected, actual)
    if INCOMPARABLE_TEXT.search(expected.get("text", "")):
        return Verdict(INCOMPARABLE, expected, actual)
    if INCOMPARABLE_ERROR.search(actual.get("error", "")):
        return Verdict(INCOMPARABLE, expected, actual)
    if expected.get("error", "").startswith("TimeoutError"):
        return Verdict(INCOMPARABLE, expected, actual)
    both_fail = "error" in expected and "error" in actual
    same = both_fail or expected == actual
    return Verdict(SAME if same else DIFFERENT, expected, actual)
