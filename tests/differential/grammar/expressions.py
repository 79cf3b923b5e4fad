"""Random expressions. They are made for a kind of value, so that most of them can be evaluated."""

from grammar import literals

INT, FLOAT, STR, BOOL, LIST, TEXTS, DICT = "int", "float", "str", "bool", "list", "texts", "dict"
KINDS = [INT, FLOAT, STR, BOOL, LIST, TEXTS, DICT]

# Left out on purpose:
#   random, lipsum         differ from run to run
#   generators, functions  print memory addresses: filters that give generators are followed by list
#   integers past 64 bits  are an error in forge
#   unhashable keys        Jinja refuses a constant dict with such a key even where it never runs
#   Markup                 what tojson, escape and safe give; forge has plain strings, and with
#                          autoescape off it shows in repr() and `+` only. `~` makes a plain string
STR_FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "string", "trim('x')", "replace('a', 'z')",
    "replace('a', 'z', 1)", "indent", "indent(2)", "indent(2, true)", "indent(1, blank=true)",
    "center(20)", "truncate(8)", "truncate(7, true)", "truncate(9, false, '!')", "default('d')",
    "default('d', true)", "urlencode", "striptags|string", "wordwrap(5)", "wordwrap(4, false)",
    "toyaml", "reverse", "d('x')", "wordwrap(6, true, '/')", "truncate(5, false, '..', 0)", "pprint",
]
STR_METHODS = [
    "upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()", "swapcase()",
    "strip('xa')", "replace('a', 'bb')", "replace('', '.', 3)", "center(9, '*')", "ljust(6)",
    "rjust(6, '.')", "zfill(5)", "casefold()", "removeprefix('x')", "removesuffix('b')",
    "expandtabs(4)", "format(1, 2)", "join(['1', '2'])", "partition(' ')[0]", "rpartition(' ')[2]",
    "translate({97: 'X', 98: none})", "expandtabs()", "encode|string if false else ''",
]
STR_TO_LIST = [
    "split()", "split(',')", "split('a', 1)", "rsplit(' ', 1)", "splitlines()", "splitlines(true)",
    "partition('a')|list", "rpartition('a')|list", "rsplit()", "split(none, 1)",
]
STR_TO_BOOL = [
    "startswith('a')", "endswith('b')", "isdigit()", "isalpha()", "isalnum()", "isupper()", "islower()",
    "isspace()", "istitle()", "isdecimal()", "isnumeric()", "isidentifier()", "isascii()",
    "isprintable()", "startswith(('x', 'H'))", "endswith('b', 1, 5)",
]
STR_TO_INT = ["find('a')", "rfind('a')", "count('a')", "find('b', 2)", "count('')", "rfind('b', 0, 4)"]
LIST_FILTERS = [
    "list", "sort", "sort(reverse=true)", "reverse|list", "unique|list", "map('string')|list",
    "select|list", "reject|list", "batch(2)|list", "batch(2, 0)|list", "slice(2)|list",
    "slice(3, 'f')|list", "map('default', 1)|list", "select('defined')|list", "reject('none')|list",
    "select('odd')|list", "sort(case_sensitive=true)", "select('gt', 2)|list",
]
FORMATS = [
    "{}", "{:>8}", "{:<8}|", "{:^9}", "{:*^9}", "{!r}", "{!s:>6}", "{0} {0}", "{:{width}}", "{:.2}",
    "{{}}", "{0[0]}", "{!a}",
]
NUMBER_FORMATS = [
    "{:5}", "{:05}", "{:+}", "{:,}", "{:_}", "{:.3f}", "{:e}", "{:g}", "{:%}", "{:10.2f}", "{:<6}|",
    "{: }", "{:.1%}", "{:=+8}", "{:#^12}", "{:08.3f}", "{:.0f}", "{:#.3g}", "{:,.2f}", "{:G}", "{:n}",
]
INT_FORMATS = ["{:d}", "{:x}", "{:X}", "{:#x}", "{:b}", "{:#o}", "{:08b}", "{:c}", "{:#_x}", "{:,d}"]
PERCENTS = ["%s", "%d", "%5d|", "%-5d|", "%05d", "%+d", "%x", "%.2f", "%e", "%g", "%r", "%%%s", "%i", "%5.1f"]
TESTS = [
    "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string",
    "mapping", "iterable", "sequence", "callable", "upper", "lower", "escaped", "sameas none",
    "eq 1", "ne 'a'", "in [1, 'a']", "== 1", "equalto 2",
]
NUMBER_TESTS = ["odd", "even", "divisibleby 3", "divisibleby(2)", "gt 3", "lt 3", "ge 1", "le(2)", "ne 2"]


class Expressions:
    """Gives expressions over the variables of `scope`: pairs (name, kind)."""

    def __init__(self, random):
        self.random = random
        self.scope = []

    def expression(self, kind=None, depth=3):
        kind = kind or self.random.choice(KINDS)
        if self.random.random() < 0.02:  # of another kind than what is asked for
            kind = self.random.choice(KINDS)
        if depth <= 0 or self.random.random() < 0.2:
            return self._leaf(kind)
        text = getattr(self, "_" + kind)(depth - 1)
        if self.random.random() < 0.05:
            text = self._conditional(kind, text, depth - 1)
        return text if self.random.random() > 0.08 else f"({text})"

    def atom(self, kind, depth):
        """An expression that may stand before a '.', '[' or '|'."""
        text = self.expression(kind, depth)
        return text if text.isidentifier() else f"({text})"

    def _pick(self, choices):
        return self.random.choice(choices)

    def _conditional(self, kind, text, depth):
        other = f" else {self.expression(kind, depth)}" if self.random.random() < 0.8 else ""
        return f"({text} if {self.expression(BOOL, depth)}{other})"

    def _leaf(self, kind):
        names = [name for name, its_kind in self.scope if its_kind == kind]
        if names and self.random.random() < 0.6:
            return self._pick(names)
        if self.random.random() < 0.02:
            return self._pick(["none", "None", "nope", "x", "ns.k", "dct.k", "lst[0]", "nope|default(1)"])
        if kind == INT:
            return literals.integer_literal(self.random)
        if kind == FLOAT:
            return literals.float_literal(self.random)
        if kind == STR:
            return literals.string_literal(self.random)
        if kind == BOOL:
            return self._pick(["true", "false", "True", "False"])
        if kind == LIST:
            items = [self._leaf(INT) for _ in range(self.random.randrange(4))]
            return self._pick(["[%s]", "[%s]", "(%s,)"]) % ", ".join(items) if items else "[]"
        if kind == TEXTS:
            return "[%s]" % ", ".join(self._leaf(STR) for _ in range(self.random.randrange(4)))
        return "{%s}" % ", ".join(
            f"{literals.string_literal(self.random)}: {self._leaf(self._pick([INT, STR, BOOL]))}"
            for _ in range(self.random.randrange(4)))

    def _operands(self, kind, depth):
        return self.atom(kind, depth), self.atom(kind, depth)

    def _int(self, depth):
        a, b = self._operands(INT, depth)
        small = self.random.randrange(5)
        return self._pick([
            lambda: f"{a} {self._pick('+-*')} {b}",
            lambda: f"{a} {self._pick(['//', '%'])} {self.random.randrange(1, 9)}",
            lambda: f"-{a}",
            lambda: f"{a} // -{self.random.randrange(1, 9)}",
            lambda: f"{self.random.randrange(-5, 9)} ** {small}",
            lambda: f"{self.atom(self._pick([LIST, TEXTS, STR, DICT]), depth)}|length",
            lambda: f"{self.atom(STR, depth)}|int({small})",
            lambda: f"{self.atom(FLOAT, depth)}|int",
            lambda: f"{self.atom(LIST, depth)}|sum",
            lambda: f"{a}|abs",
            lambda: f"{self.atom(LIST, depth)}|{self._pick(['first', 'last', 'max', 'min'])}|default(0)",
            lambda: f"{self.atom(STR, depth)}.{self._pick(STR_TO_INT)}",
            lambda: f"{self.atom(STR, depth)}|{self._pick(['wordcount', 'count'])}",
            lambda: f"{a}|round(-1)|int",
            lambda: f"{self.atom(LIST, depth)}.{self._pick(['count(1)', 'index(1)'])}",
            lambda: f"+{a}",
            lambda: f"{self.atom(STR, depth)}|int(base={self._pick([2, 8, 10, 16])})",
            lambda: f"{self.atom(LIST, depth)}[{self.random.randrange(-3, 3)}]",
        ])()

    def _float(self, depth):
        a, b = self.atom(FLOAT, depth), self.atom(self._pick([INT, FLOAT]), depth)
        return self._pick([
            lambda: f"{a} {self._pick('+-*')} {b}",
            lambda: f"{b} / {self._pick([1, 2, 3, 7, 0.5])}",
            lambda: f"{a} {self._pick(['//', '%'])} {self._pick([2, 0.7, -3])}",
            lambda: f"{b} ** -{self.random.randrange(3)}",
            lambda: f"{a}|round({self.random.randrange(4)})",
            lambda: f"{a}|round({self._pick(['1, ' + repr('floor'), '2, ' + repr('ceil'), ''])})",
            lambda: f"{self.atom(STR, depth)}|float",
            lambda: f"{b}|float",
            lambda: f"-{a}",
        ])()

    def _str(self, depth):
        text = self.atom(STR, depth)
        any_kind = self.atom(self._pick(KINDS), depth)
        number = self.atom(self._pick([INT, FLOAT]), depth)
        return self._pick([
            lambda: f"{text} + {self.atom(STR, depth)}",
            lambda: f"{any_kind} ~ {self.atom(self._pick(KINDS), depth)}",
            lambda: f"{text} * {self.random.randrange(4)}",
            lambda: f"{text}|{self._pick(STR_FILTERS)}",
            lambda: f"{text}|{self._pick(STR_FILTERS)}",
            lambda: f"{text}.{self._pick(STR_METHODS)}",
            lambda: f"{text}.{self._pick(STR_METHODS)}",
            lambda: f"{text}[{self._slice()}]",
            lambda: f"{any_kind}|string",
            lambda: f"{any_kind}|toyaml",
            lambda: f"({any_kind}|tojson{self._pick(['', '(2)', '(indent=1)', ''])} ~ '')",
            lambda: f"{any_kind}|pprint",
            lambda: f"{self.atom(TEXTS, depth)}|join({literals.string_literal(self.random)})",
            lambda: f"{literals.string_literal(self.random)}.join({self.atom(TEXTS, depth)})",
            lambda: f"{self.atom(self._pick([LIST, DICT]), depth)}|join(', ')",
            lambda: f"'{self._pick(FORMATS)}'.format({text}, width={self.random.randrange(9)})",
            lambda: f"'{self._pick(NUMBER_FORMATS)}'.format({number})",
            lambda: f"'{self._pick(INT_FORMATS)}'.format({self.atom(INT, depth)})",
            lambda: f"'{self._pick(PERCENTS)}' % {number}",
            lambda: f"'{self._pick(PERCENTS)}'|format({number})",
            lambda: f"'%s-%s' % ({any_kind}, {number})",
            lambda: f"'%(a)s %(b)d' % {{'a': {any_kind}, 'b': {self.atom(INT, depth)}}}",
            lambda: f"repr({any_kind})",
            lambda: f"{number}|filesizeformat{self._pick(['', '(true)'])}",
            lambda: f"joinpath({text}, {self.atom(STR, depth)})",
            lambda: f"{self._pick(['normpath', 'dirname', 'basename', 'abspath'])}({text})",
            lambda: f"{self.atom(TEXTS, depth)}|{self._pick(['first', 'last', 'max', 'min'])}|d('')",
            lambda: f"{self.atom(DICT, depth)}|{self._pick(['xmlattr', 'urlencode', 'xmlattr(false)'])}|string",
        ])()

    def _bool(self, depth):
        a, b = self.expression(BOOL, depth), self.expression(BOOL, depth)
        kind = self._pick([INT, FLOAT, STR, LIST])
        left, right = self._operands(kind, depth)
        any_kind = self.atom(self._pick(KINDS), depth)
        negation = self._pick(["", "", "not "])
        return self._pick([
            lambda: f"{a} {self._pick(['and', 'or'])} {b}",
            lambda: f"not {a}",
            lambda: f"{left} {self._pick(['==', '!=', '<', '<=', '>', '>='])} {right}",
            lambda: f"{left} < {right} <= {self.atom(kind, depth)}",
            lambda: f"{any_kind} == {self.atom(self._pick(KINDS), depth)}",
            lambda: f"{self.atom(INT, depth)} {negation}in {self.atom(LIST, depth)}",
            lambda: f"{self.atom(STR, depth)} {negation}in {self.atom(self._pick([STR, TEXTS, DICT]), depth)}",
            lambda: f"({any_kind} is {negation}{self._pick(TESTS)})",
            lambda: f"({self.atom(INT, depth)} is {negation}{self._pick(NUMBER_TESTS)})",
            lambda: f"{self.atom(STR, depth)}.{self._pick(STR_TO_BOOL)}",
            lambda: f"({self._pick(literals.NAMES)} is {negation}defined)",
        ])()

    def _list(self, depth):
        items = [self.expression(self._pick([INT, INT, INT, FLOAT, BOOL]), depth)
                 for _ in range(self.random.randrange(5))]
        operand = self.atom(LIST, depth)
        return self._pick([
            lambda: "[%s]" % ", ".join(items),
            lambda: f"range({self.random.randrange(-2, 6)}, {self.random.randrange(8)})|list",
            lambda: f"range({self.random.randrange(9)}, 0, -{self.random.randrange(1, 4)})|list",
            lambda: f"{operand} + {self.atom(LIST, depth)}",
            lambda: f"{operand} * {self.random.randrange(3)}",
            lambda: f"{operand}[{self._slice()}]",
            lambda: f"{operand}|{self._pick(LIST_FILTERS)}",
            lambda: f"{operand}|{self._pick(LIST_FILTERS)}",
            lambda: f"{self.atom(TEXTS, depth)}|map('length')|list",
            lambda: f"{self.atom(DICT, depth)}{self._pick(['.values()', '.items()', '|items', '|dictsort'])}|list",
            lambda: f"{operand}.copy()",
        ])()

    def _texts(self, depth):
        text, operand = self.atom(STR, depth), self.atom(TEXTS, depth)
        return self._pick([
            lambda: "[%s]" % ", ".join(self.expression(STR, depth) for _ in range(self.random.randrange(4))),
            lambda: f"{text}.{self._pick(STR_TO_LIST)}",
            lambda: f"{text}|list",
            lambda: f"{operand}|map('{self._pick(['upper', 'title', 'trim', 'reverse', 'string'])}')|list",
            lambda: f"{operand}|map('replace', 'a', 'b')|list",
            lambda: f"{operand}|{self._pick(['sort', 'unique|list', 'reverse|list', 'select|list'])}",
            lambda: f"{operand}|select('{self._pick(['upper', 'lower', 'string', 'none'])}')|list",
            lambda: f"{operand}[{self._slice()}]",
            lambda: f"{operand} + {self.atom(TEXTS, depth)}",
            lambda: f"{self.atom(DICT, depth)}|list",
            lambda: f"{self.atom(DICT, depth)}.keys()|sort",
        ])()

    def _dict(self, depth):
        operand = self.atom(DICT, depth)
        return self._pick([
            lambda: "{%s}" % ", ".join(
                f"{self._leaf(self._pick([STR, STR, INT]))}: {self.expression(None, depth)}"
                for _ in range(self.random.randrange(4))),
            lambda: f"dict(a={self.expression(None, depth)}, b={self.expression(None, depth)})",
            lambda: f"dict({operand}, z={self.expression(None, depth)})",
            lambda: f"dict({operand}.items())",
            lambda: f"{operand}.copy()",
        ])()

    def _slice(self):
        bounds = ["", "0", "1", "2", "-1", "-2", "5", "none"]
        text = f"{self._pick(bounds)}:{self._pick(bounds)}"
        return text + f":{self._pick(['', '1', '2', '-1', '-2'])}" if self.random.random() < 0.3 else text
