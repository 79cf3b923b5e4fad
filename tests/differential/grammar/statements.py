"""Random statements with text between them, in Jinja's tags and in the line syntax.

Left out on purpose: `include … without context` inside set, filter and call blocks, macros
and recursive loops.
Jinja 3.1 lets its text pass by the block that should capture it; forge captures it.
"""

from grammar import literals
from grammar.expressions import BOOL, DICT, INT, KINDS, LIST, STR, TEXTS, Expressions

TEXTS_BETWEEN = [
    "a", "text ", " ", "  ", "\n", "\n\n", "key: v\n", "  - item\n", "x: 1\n", "\ttab\n", "é", "}}", "%}",
    "# c\n", "a  \n", "[1, 2]\n", "{ a: b }\n", "{ ", "'", "\\n", "x ## comment\n", "## comment\n", "-",
    "--x\n", "\r\n", "<<: *m\n", "--- \n", "  ## indented comment\n", "foo## no comment\n", "#",
]
COMMENTS = ["{# c #}", "{#- c -#}", "{# a\nb #}\n", "{#c-#} ", "{#+ c #}", "{##}"]


class Statements(Expressions):
    """`blocks`, `macros` and `templates` hold the names that a statement may use."""

    def __init__(self, random):
        super().__init__(random)
        self.blocks = []       # names that this template may still define
        self.macros = []       # names of macros with one or two parameters
        self.templates = []    # names of templates that may be included
        self.has_parent = False
        self.captured = 0      # blocks around that capture what is printed
        self.inside_loop = False
        self.counter = 0

    def body(self, depth, length=None):
        length = length if length is not None else self.random.randrange(1, 4)
        kept = list(self.scope), list(self.macros)
        text = "".join(self.piece(depth) for _ in range(length))
        self.scope, self.macros = kept
        return text

    def captured_body(self, depth):
        self.captured += 1
        text = self.body(depth)
        self.captured -= 1
        return text

    def piece(self, depth):
        roll = self.random.random()
        if roll < 0.35:
            return self._pick(TEXTS_BETWEEN)
        if roll < 0.4:
            return self._pick(COMMENTS)
        if roll < 0.68 or depth <= 0:
            return self.print_()
        return self.statement(depth - 1)

    def print_(self):
        expression = self.expression(None, self.random.randrange(4))
        if self.random.random() < 0.2:
            return f"\n{self._pick(['==', '=>', '  =='])} {expression}\n"
        return self._pick(["{{ %s }}", "{{%s}}", "{{- %s }}", "{{ %s -}}", "{{- %s -}}"]) % \
            f" {expression} "

    def tag(self, content):
        """`{% content %}` in one of its ways of writing."""
        if self.random.random() < 0.15:
            return f"\n{self._pick(['--', '--', '<<', '>>', '  --'])} {content}\n"
        opening = self._pick(["{%", "{%", "{%", "{%-", "{%+"])
        closing = self._pick(["%}", "%}", "%}", "-%}", "+%}"])
        return f"{opening} {content} {closing}"

    def statement(self, depth):
        makers = [self.if_, self.for_, self.set_, self.set_, self.set_attribute, self.set_block,
                  self.filter_, self.with_, self.macro, self.call, self.raw, self.call_block]
        if self.blocks:
            makers += [self.block, self.block]
        if self.templates:
            makers += [self.include, self.import_]
        return self._pick(makers)(depth)

    def if_(self, depth):
        text = self.tag(f"if {self.expression(BOOL, 2)}{self._pick(['', '', ':'])}") + self.body(depth)
        while self.random.random() < 0.25:
            text += self.tag(f"elif {self.expression(BOOL, 1)}") + self.body(depth)
        if self.random.random() < 0.4:
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endif")

    def for_(self, depth):
        outer, self.inside_loop = self.inside_loop, True
        kept = list(self.scope)
        recursive = ""
        roll = self.random.random()
        if roll < 0.2:
            target, iterable = "k, v", f"{self.atom(DICT, 1)}.items()"
            self.scope += [("k", STR)]
        elif roll < 0.3:
            target, iterable = "i", "[1, [2, 3], [[4]]]"
            recursive = " recursive"
        elif roll < 0.4:
            target, iterable = "a, b", "[(1, 2), (3, 4)]"
            self.scope += [("a", INT), ("b", INT)]
        else:
            kind = self._pick([LIST, TEXTS, STR])
            target, iterable = self._pick(["i", "x"]), self.expression(kind, 2)
            self.scope += [(target, INT if kind == LIST else STR)]
        test = f" if {self.expression(BOOL, 1)}" if self.random.random() < 0.2 else ""
        text = self.tag(f"for {target} in {iterable}{test}{recursive}")
        if recursive:
            text += "{% if i is iterable %}[{{ loop(i) }}]{% else %}{{ i }}{% endif %}"
        text += self.loop_use() + (self.captured_body if recursive else self.body)(depth)
        self.scope, self.inside_loop = kept, outer
        if self.random.random() < 0.25:
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endfor")

    def loop_use(self):
        if self.random.random() < 0.5:
            return ""
        return "{{ loop.%s }}" % self._pick([
            "index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0",
            "cycle('a', 'b')", "previtem|d('-')", "nextitem|d('-')", "changed(1)", "nope|d('no')",
            "index is odd",
        ])

    def set_(self, depth):
        if self.random.random() < 0.1:
            return self.tag(f"set y, z = {self.expression(INT, 1)}, {self.expression(STR, 1)}")
        name, kind = self._pick(["x", "y", "z", "q"]), self._pick(KINDS)
        text = self.tag(f"set {name} = {self.expression(kind, 3)}")
        self.scope = [pair for pair in self.scope if pair[0] != name] + [(name, kind)]
        return text

    def set_attribute(self, depth):
        return self.tag(f"set ns.{self._pick(['k', 'm'])} = {self.expression(None, 2)}")

    def set_block(self, depth):
        name = self._pick(["x", "q"])
        filters = self._pick(["", "", " | upper", " | trim | replace('a', 'b')"])
        text = self.tag(f"set {name}{filters}") + self.captured_body(depth) + self.tag("endset")
        self.scope = [pair for pair in self.scope if pair[0] != name] + [(name, STR)]
        return text

    def filter_(self, depth):
        name = self._pick(["trim", "trim()", "upper", "indent(2)", "replace('a', 'b')", "trim | title",
                           "indent(2, true)", "string"])
        return self.tag(f"filter {name}") + self.captured_body(depth) + self.tag("endfilter")

    def with_(self, depth):
        kept = list(self.scope)
        kind = self._pick(KINDS)
        assignment = f"w = {self.expression(kind, 2)}" if self.random.random() < 0.9 else ""
        if assignment and self.random.random() < 0.3:
            assignment += f", y = {self.expression(STR, 1)}"
        text = self.tag(f"with {assignment}")
        self.scope += [("w", kind)] if assignment else []
        text += self.body(depth) + self.tag("endwith")
        self.scope = kept
        return text

    def macro(self, depth):
        self.counter += 1
        name = f"m{self.counter}" if self.random.random() < 0.8 else "m1"
        kept, outer = list(self.scope), self.inside_loop
        self.scope = [pair for pair in kept if pair[0] in ("n", "lst", "dct")] + [("a", STR)]
        default = self.expression(self._pick([STR, INT]), 1)
        signature = self._pick(["a, b=%s", "a='d', b=%s", "a, b=a, c=%s"]) % default
        extra = self._pick(["", "", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}",
                            "{{ varargs|length }}{{ kwargs|dictsort }}", "{{ caller is defined }}"])
        text = self.tag(f"macro {name}({signature})") + "{{ a }}/{{ b }}" + extra
        text += self.captured_body(min(depth, 1)) + self.tag(self._pick(["endmacro"]))
        self.scope, self.inside_loop = kept, outer
        self.macros.append(name)
        return text

    def _call_arguments(self):
        return self._pick(["%s", "%s, 2", "a=%s", "%s, b=3", "%s, 2, 3", "%s, **{'b': 4}", "*[%s, 5]",
                           "b=1, a=%s", "%s, z=9"]) % self.expression(self._pick([STR, INT]), 1)

    def call(self, depth):
        before = "" if self.macros or self.random.random() < 0.05 else self.macro(0)
        name = self._pick(self.macros) if self.macros else "m1"
        return before + "{{ %s(%s) }}" % (name, self._call_arguments())

    def call_block(self, depth):
        before = "" if self.macros or self.random.random() < 0.05 else self.macro(0)
        name = self._pick(self.macros) if self.macros else "m1"
        parameters = self._pick(["", "", "(u='d')"])
        return before + self.tag(f"call{parameters} {name}({self._call_arguments()})") + self.captured_body(depth) + \
            self.tag("endcall")

    def raw(self, depth):
        content = self._pick(["{{ x }}", "{% if %}", "a\n", "{# c #}", " ", "-- if x\n", "[b]"])
        return self.tag("raw") + content + self.tag("endraw")

    def block(self, depth):
        name = self.blocks.pop(self.random.randrange(len(self.blocks)))
        modifier = self._pick(["", "", "", " scoped", ""])
        kept, outer = list(self.scope), self.inside_loop
        if not modifier:
            self.scope = [pair for pair in kept if pair[0] in ("n", "lst", "dct", "s")]
        text = self.tag(f"block {name}{modifier}") + (self._super() if self.random.random() < 0.4 else "")
        text += self.body(depth) + self.tag(self._pick(["endblock", f"endblock {name}"]))
        self.scope, self.inside_loop = kept, outer
        return text

    def _super(self):
        if not self.has_parent:
            return ""
        return self._pick(["{{ super() }}", "{{ super()|trim }}", "\n== super()\n", "{{ super.super() }}"])

    def header(self, depth):
        """A block by its header line. It lasts until the next header, so that it holds the rest."""
        name = self.blocks.pop(self.random.randrange(len(self.blocks)))
        return f"\n{self._pick(['', '  '])}[{name}{self._pick(['', '', '', '!'])}]\n" + \
            self._pick(["", "k: v\n", "== super()\n" if self.has_parent else "", "  deep: 1\n\n"])

    def include(self, depth):
        name = repr(self._pick(self.templates))
        name = self._pick([name, name, name, f"['nope', {name}]", "'no' ~ 'pe'"])
        modifiers = self._pick(["", "", " ignore missing", " with context"] + (
            [] if self.captured else [" without context", " ignore missing without context"]))
        return self.tag(f"include {name}{modifiers}") + self._pick(["", "\n"])

    def import_(self, depth):
        name = repr(self._pick(self.templates))
        context = self._pick(["", "", " with context", " without context"])
        if self.random.random() < 0.5:
            return self.tag(f"from {name} import m1{self._pick(['', ' as mm', ', x'])}{context}")
        use = self._pick(["", "{{ lib.m1('p') }}", "{{ lib.x|d('no x') }}", "{{ lib.m9 is defined }}"])
        return self.tag(f"import {name} as lib{context}") + use
