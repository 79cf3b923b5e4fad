"""What the original does with a case: Forgather's line syntax in front of Jinja2 itself.

Only the loader and the line preprocessor are written anew here, after Forgather's regular
expressions; the template language is Jinja2's own, in a sandbox, with strict undefined values.
"""

import datetime
import os.path
import re
import time

import yaml
from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, Undefined
from jinja2.exceptions import UndefinedError
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment

# What forge_answers.cpp pins as well.
UNIX_TIME = 1700000000.25
WORKING_DIRECTORY = "/cwd"
HOME = "/home/ada"

MARKER = re.compile(r"\n#\s*-{3,}\s*([\w./]+)\s*-{3,}\n")
NEWLINE = re.compile(r"\r\n|\r|\n")
COMMENT = re.compile(r"\s*##(.*)")
TRAILING_COMMENT = re.compile(r"(.*)\s+#{2,}.*")
STATEMENT = re.compile(r"\s*(--|<<|>>|==|=>)\s(.*)")
HEADER = re.compile(r"^(\s*)\[(\w+)([!])*\]\s*$")
SIGILS = {
    "--": ("{% ", " %}"),
    "<<": ("{%- ", " %}"),
    ">>": ("{% ", " -%}"),
    "==": ("{{ ", " }}"),
    "=>": ("{{ ", "|trim('\\n')}}"),
}


def split_inline(text):
    """[name, text] of each template of a file; the file's own comes first, with the name ""."""
    pieces = MARKER.split(text)
    return [["", pieces[0]]] + [[n, t] for n, t in zip(pieces[1::2], pieces[2::2])]


def _translate(line):
    """A line in Jinja's syntax, or None for a comment line."""
    if COMMENT.fullmatch(line):
        return None
    trailing = TRAILING_COMMENT.fullmatch(line)
    if trailing:
        line = trailing[1]
    statement = STATEMENT.fullmatch(line)
    if statement:
        before, behind = SIGILS[statement[1]]
        return before + statement[2] + behind
    return line


def preprocess(text):
    translated = [_translate(line) for line in NEWLINE.split(text)]
    lines, open_blocks = [], []

    def close_block():
        _, name, trimmed = open_blocks.pop()
        if lines[-1]:
            lines[-1] += "{{'\\n'}}"
        lines[-1] += "{% endblock " + name + " +%}" + ("{% endfilter %}" if trimmed else "")

    for line in translated:
        if line is None:
            continue
        header = HEADER.match(line)
        if not header:
            lines.append(line)
            continue
        indent, trimmed = len(header[1]), bool(header[3])
        while open_blocks and open_blocks[-1][0] >= indent:
            close_block()
        lines.append(("{% filter trim %}" if trimmed else "") + "{% block " + header[2] + " %}")
        open_blocks.append((indent, header[2], trimmed))
    while open_blocks:
        close_block()
    return "\n".join(lines)


class Loader(BaseLoader):
    """Files from a dict; inline templates from the moment that the file that holds them is read."""

    def __init__(self, files):
        self.files = {name: NEWLINE.sub("\n", text) for name, text in files.items()}
        self.inline = {}

    def get_source(self, environment, template):
        if template in self.inline:
            return self.inline[template], None, lambda: True
        segments = template.split("/")
        if any(".." == part for part in segments):
            raise TemplateNotFound(template)
        path = "/".join(part for part in segments if part and part != ".")
        if path not in self.files:
            raise TemplateNotFound(template)
        own, *inline = split_inline(self.files[path])
        self.inline.update(inline)
        return own[1], path, lambda: True


class LineSyntax(Extension):
    """Hooks the line preprocessor in, as Forgather does."""

    def preprocess(self, source, name, filename=None):
        return preprocess(source)


_MISSING = object()


def toyaml(value, default=_MISSING):
    if isinstance(value, Undefined):
        if default is _MISSING:
            raise UndefinedError("toyaml of an undefined value")
        value = default
        if isinstance(value, Undefined):
            raise UndefinedError("toyaml of an undefined value")
    if isinstance(value, int):
        return str(value)
    if value is None:
        return "null"
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
    text = text.rstrip("\n")
    return text[:-4].rstrip("\n") if text.endswith("\n...") else text


def _strings(function):
    def checked(*arguments):
        for argument in arguments:
            if isinstance(argument, Undefined):
                argument._fail_with_undefined_error()
        return function(*arguments)

    return checked


def _absolute(path):
    return os.path.normpath(os.path.join(WORKING_DIRECTORY, path))


def _relative(path, start="."):
    return os.path.relpath(_absolute(path), _absolute(start))


def _globals():
    utc = time.gmtime(UNIX_TIME)
    now = datetime.datetime.utcfromtimestamp(UNIX_TIME)
    iso, file = "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H-%M-%S"
    return {
        "isotime": lambda: time.strftime(iso, utc),  # the tests run in UTC
        "utcisotime": lambda: time.strftime(iso, utc),
        "filetime": lambda: time.strftime(file, utc),
        "utcfiletime": lambda: time.strftime(file, utc),
        "now": lambda: now,
        "utcnow": lambda: now,
        "joinpath": _strings(os.path.join),
        "normpath": _strings(os.path.normpath),
        "abspath": _strings(_absolute),
        "relpath": _strings(_relative),
        "dirname": _strings(os.path.dirname),
        "basename": _strings(os.path.basename),
        "splitext": _strings(os.path.splitext),
        "repr": repr,
        "modname_from_path": lambda path: os.path.splitext(os.path.basename(path))[0],
        "user_home_dir": lambda: HOME,
        "getcwd": lambda: WORKING_DIRECTORY,
        "forgather_config_dir": lambda: HOME + "/.config/forgather",
        "project_dir": "/projects/demo",
        "workspace_root": "/projects",
        "hostname": "lab",
    }


def render(case):
    environment = SandboxedEnvironment(
        extensions=[LineSyntax],
        loader=Loader(case["files"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=True,
        cache_size=400,
    )
    environment.filters["toyaml"] = toyaml
    environment.globals.update(_globals())
    return environment.get_template(case["main"]).render(**case.get("variables", {}))
