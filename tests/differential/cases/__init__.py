"""The hand-written cases, as pairs of a name and a case."""

import pathlib

from cases import documents, inheritance, line_syntax, sandbox, statements

FOLDER = pathlib.Path(__file__).parent


def _expressions():
    for line in (FOLDER / "expressions.txt").read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("# "):
            yield line, {"kind": "render", "main": "main", "files": {"main": "{{ " + line + " }}"}}


def _trees(module):
    """Modules hold a list CASES: a template's text, or a dict of files with one named "main"."""
    for case in module.CASES:
        files = {"main": case} if isinstance(case, str) else case
        yield files["main"], {"kind": "render", "main": "main", "files": files,
                              "variables": {"v": 1, "name": "ada"}}


def all_cases():
    yield from _expressions()
    for module in (statements, inheritance, line_syntax, sandbox):
        yield from _trees(module)
    for text in line_syntax.CASES:
        text = text if isinstance(text, str) else text["main"]
        yield text, {"kind": "lines", "text": text}
        yield text, {"kind": "split", "text": text}
    for text in documents.CASES:
        yield text, {"kind": "yaml", "text": text}
