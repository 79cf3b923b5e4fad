#!/usr/bin/env python3
"""Shrinks a failing case while it still differs.

    tests/differential/reduce.py --program build/release/forge_differential CASE.json

CASE.json holds cases as run.py's --save writes them, one a line; "-" reads them from stdin.
"""

import argparse
import json
import re
import sys

from compare import judge
from program import Program

# From coarse to fine: lines, tags, tokens, characters.
CUTS = [re.compile(r"[^\n]*\n|[^\n]+"), re.compile(r"\{%.*?%\}|\{\{.*?\}\}|[^{]+|\{", re.S),
        re.compile(r"\w+|\s+|[^\w\s]"), re.compile(r".", re.S)]


def _shape(verdict):
    """What must stay the same: a crash, an error on one side only, or two texts."""
    sides = verdict.expected, verdict.actual
    return tuple("crash" if "crash" in s else "error" if "error" in s else "value" for s in sides)


def _shrunk_text(text, fails):
    """Removes ever smaller runs of pieces as long as `fails` holds."""
    for cut in CUTS:
        pieces = cut.findall(text)
        size = max(len(pieces) // 2, 1)
        while pieces:
            at, shrunk = 0, False
            while at < len(pieces):
                candidate = pieces[:at] + pieces[at + size:]
                if fails("".join(candidate)):
                    pieces, shrunk = candidate, True
                else:
                    at += size
            if size == 1 and not shrunk:
                break
            size = max(size // 2, 1)
        text = "".join(pieces)
    return text


def reduced(case, program):
    """The least case found that differs in the same way."""
    shape = _shape(judge(case, program))

    def fails(candidate):
        verdict = judge(candidate, program)
        return verdict.differs and _shape(verdict) == shape

    if case["kind"] != "render":
        return {**case, "text": _shrunk_text(case["text"], lambda t: fails({**case, "text": t}))}
    for name in sorted(case["files"]):
        candidate = {**case, "files": {k: v for k, v in case["files"].items() if k != name}}
        if name != case["main"] and fails(candidate):
            case = candidate
    for name in sorted(case["files"]):
        text = _shrunk_text(case["files"][name],
                            lambda t: fails({**case, "files": {**case["files"], name: t}}))
        case = {**case, "files": {**case["files"], name: text}}
    for name in sorted(case.get("variables", {})):
        candidate = {**case, "variables": {k: v for k, v in case["variables"].items() if k != name}}
        case = candidate if fails(candidate) else case
    return case


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="forge_differential")
    parser.add_argument("cases", help="file of cases, or -")
    options = parser.parse_args()
    stream = sys.stdin if options.cases == "-" else open(options.cases, encoding="utf-8")
    with stream, Program(options.program) as program:
        for line in stream:
            case = json.loads(line)
            verdict = judge(case, program)
            if not verdict.differs:
                print("does not differ (any more)")
                continue
            case = reduced(case, program)
            verdict = judge(case, program)
            print(json.dumps(case, ensure_ascii=False))
            print(f"  original: {json.dumps(verdict.expected, ensure_ascii=False)}")
            print(f"  forge:    {json.dumps(verdict.actual, ensure_ascii=False)}")


if __name__ == "__main__":
    main()
