r"""A reader of TLA+, small because it only has to read our own specifications.

It knows tokens with their line and column, the top-level definitions of a module (a name in the first column), and
expressions: junction lists by their columns, the operators around comparisons by their precedence, and everything that
binds tighter than a comparison as one run of operators. That is enough to find every conjunct and every comparison of
an action. It is not a parser for all of TLA+: no proofs, no user-defined infix operators, no nested modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<line>\\\*[^\n]*)
      | (?P<rule>-{4,}|={4,})
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>\d+)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<op>/\\|\\/|\\[A-Za-z]+|<=>|\|->|=>|==|<<|>>|<=|=<|>=|/=|\|\||\.\.|:>|@@|~>|->|<-|\[\]|<>|::=|:=|\\
            |[-+*/%^&|~=<>\#'!@:,.()\[\]{}])""",
    re.VERBOSE,
)
HEADINGS = frozenset(["EXTENDS", "VARIABLE", "VARIABLES", "CONSTANT", "CONSTANTS", "ASSUME", "THEOREM", "INSTANCE"])
NOT_NAMES = HEADINGS | frozenset(
    [
        *("IF", "THEN", "ELSE", "LET", "IN", "CASE", "OTHER", "CHOOSE", "EXCEPT", "UNCHANGED", "DOMAIN", "SUBSET"),
        *("UNION", "ENABLED", "TRUE", "FALSE", "BOOLEAN", "STRING", "LAMBDA", "MODULE", "WITH", "LOCAL"),
    ]
)
COMPARISONS = frozenset(["=", "#", "/=", "<", ">", "<=", "=<", ">=", "\\in", "\\notin", "\\leq", "\\geq", "\\subseteq"])
PREFIXES = frozenset(["~", "-", "[]", "<>", "DOMAIN", "SUBSET", "UNION", "ENABLED", "UNCHANGED", "\\lnot", "\\neg"])
TIGHT = frozenset(
    [
        *("+", "-", "*", "/", "%", "^", "..", ":>", "@@", "&", "|", "||", "\\"),
        *("\\union", "\\cup", "\\cap", "\\intersect", "\\o", "\\circ", "\\div", "\\X", "\\times", "\\cdot"),
    ]
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `start` and `end` are positions in the text, `line` and `column` begin at 0."""

    kind: str
    text: str
    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A top-level definition; its body is `tokens`."""

    name: str
    tokens: tuple[Token, ...]

    @property
    def names(self) -> frozenset[str]:
        """Every name that the body mentions."""
        return frozenset(token.text for token in self.tokens if token.kind == "word") - NOT_NAMES

    @property
    def primed(self) -> bool:
        """Whether the body itself mentions the next state."""
        return any(token.text in {"'", "UNCHANGED"} for token in self.tokens)


@dataclass(slots=True)
class Node:
    """A part of an expression: tokens first..last of its definition."""

    kind: str  # "and", "or", "compare", "if", "update" or "other"
    first: int
    last: int
    children: list[Node] = field(default_factory=list)
    operator: int = -1
    """Index of the operator token of a comparison."""
    binder: bool = False
    """The `x \\in S` of a quantifier or of a set: not a comparison to mutate."""


def tokens_of(text: str) -> list[Token]:
    """The tokens of a module, without whitespace and comments. ValueError names the line that cannot be read."""
    found = []
    position, line, line_start = 0, 0, 0
    while position < len(text):
        if text.startswith("(*", position):
            end = end_of_comment(text, position)
            kind = "space"
        else:
            match = TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"line {line + 1}: cannot read {text[position : position + 10]!r}")
            end = match.end()
            kind = match.lastgroup or ""
        if kind not in {"space", "line"}:
            found.append(Token(kind, text[position:end], position, end, line, position - line_start))
        breaks = text.count("\n", position, end)
        if breaks:
            line += breaks
            line_start = text.rindex("\n", position, end) + 1
        assert end > position, "every turn reads something"
        position = end
    return found


def end_of_comment(text: str, start: int) -> int:
    """Comments in (* *) can be nested."""
    depth, position = 0, start
    while position < len(text):
        if text.startswith("(*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*)", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    return len(text)


def definitions_of(text: str) -> dict[str, Definition]:
    """The top-level definitions of a module, by name, in order."""
    tokens = tokens_of(text)
    starts = [index for index, token in enumerate(tokens) if token.column == 0 and ends_a_body(tokens, index)]
    found = {}
    for index, following in zip(starts, [*starts[1:], len(tokens)], strict=True):
        equals = definition_equals(tokens, index)
        if equals is not None:
            name = tokens[index].text if tokens[index].text != "LOCAL" else tokens[index + 1].text
            found[name] = Definition(name, tuple(tokens[equals + 1 : following]))
    return found


def ends_a_body(tokens: list[Token], index: int) -> bool:
    token = tokens[index]
    return token.kind == "rule" or token.text in HEADINGS or definition_equals(tokens, index) is not None


def definition_equals(tokens: list[Token], index: int) -> int | None:
    """The index of the `==` when a definition `Name ==`, `Name(a, b) ==` or `Name[x \\in S] ==` begins at `index`."""
    if index < len(tokens) and tokens[index].text == "LOCAL":
        index += 1
    if index >= len(tokens) or tokens[index].kind != "word" or tokens[index].text in NOT_NAMES:
        return None
    index += 1
    if index < len(tokens) and tokens[index].text in {"(", "["}:
        depth = 0
        while index < len(tokens):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[index].text, 0)
            index += 1
            if depth == 0:
                break
    return index if index < len(tokens) and tokens[index].text == "==" else None


def reached_from(name: str, definitions: dict[str, Definition]) -> list[str]:
    """Every definition that `name` uses, directly or not, itself first."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        if current in definitions and current not in found:
            found.append(current)
            waiting.extend(token.text for token in definitions[current].tokens if token.text in definitions)
    return found


def mentions_next_state(name: str, definitions: dict[str, Definition]) -> bool:
    """Whether a definition is an action: it primes variables, or uses a definition that does."""
    return any(definitions[other].primed for other in reached_from(name, definitions))


class ExpressionReader:
    """Reads the body of a definition into nodes. The columns of their bullets tell junction lists apart."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.at = 0
        self.lists: list[int] = []  # columns of the junction lists around the current token

    def text(self, ahead: int = 0) -> str:
        """The text of the next token, or nothing at the end of the current list item."""
        index = self.at + ahead
        if index >= len(self.tokens):
            return ""
        token = self.tokens[index]
        if self.lists and token.column <= self.lists[-1]:
            return ""
        return token.text

    def read(self) -> Node:
        if not self.tokens:
            raise ValueError("the body is empty")
        node = self.expression()
        if self.at < len(self.tokens):
            raise ValueError(f"{self.place()}: cannot make sense of {self.tokens[self.at].text!r}")
        assert not self.lists, "every junction list has ended"
        return node

    def place(self) -> str:
        """Where the reader is, for a complaint; the last token's line at the end."""
        return f"line {self.tokens[min(self.at, len(self.tokens) - 1)].line + 1}"

    def expression(self) -> Node:
        """Implications and equivalences, which bind loosest."""
        node = self.junction()
        while self.text() in {"=>", "<=>", "~>", "\\equiv"}:
            self.at += 1
            right = self.junction()
            node = Node("other", node.first, right.last, [node, right])
        return node

    def junction(self) -> Node:
        """`a /\\ b /\\ c` in one line, or without a line of its own."""
        node = self.comparison()
        while self.text() in {"/\\", "\\/"}:
            operator = self.text()
            kind = "and" if operator == "/\\" else "or"
            parts = [node]
            while self.text() == operator:
                self.at += 1
                parts.append(self.comparison())
            node = Node(kind, parts[0].first, parts[-1].last, parts)
        return node

    def comparison(self) -> Node:
        node = self.tight()
        while self.text() in COMPARISONS:
            operator = self.at
            self.at += 1
            right = self.tight()
            node = Node("compare", node.first, right.last, [node, right], operator)
        return node

    def tight(self) -> Node:
        first = self.at
        children = [self.unary()]
        while self.text() in TIGHT:
            self.at += 1
            children.append(self.unary())
        return children[0] if len(children) == 1 else Node("other", first, self.at - 1, children)

    def unary(self) -> Node:
        if self.text() in PREFIXES:
            first = self.at
            self.at += 1
            # Negation applies to a whole comparison, the others to what follows directly.
            inner = self.comparison() if self.tokens[first].text in {"~", "\\lnot", "\\neg"} else self.unary()
            return Node("other", first, inner.last, [inner])
        return self.postfix(self.primary())

    def postfix(self, node: Node) -> Node:
        while True:
            text = self.text()
            if text == "'":
                self.at += 1
                node = Node("other", node.first, self.at - 1, [node])
            elif text in {".", "!"} and self.is_word(1):
                self.at += 2
                node = Node("other", node.first, self.at - 1, [node])
            elif text in {"[", "("}:
                inner = self.brackets()
                node = Node("other", node.first, self.at - 1, [node, inner])
            else:
                return node

    def is_word(self, ahead: int) -> bool:
        return self.at + ahead < len(self.tokens) and self.tokens[self.at + ahead].kind == "word"

    def primary(self) -> Node:
        first, text = self.at, self.text()
        match text:
            case "":
                raise ValueError(f"{self.place()}: an expression is missing")
            case "/\\" | "\\/":
                return self.list_(text)
            case "(" | "[" | "{" | "<<":
                return self.brackets()
            case "\\E" | "\\A" | "CHOOSE" | "LAMBDA":
                return self.quantifier()
            case "IF":
                return self.keywords(("IF", "THEN", "ELSE"))
            case "LET":
                return self.let()
            case "CASE":
                return self.cases()
        self.at += 1
        return Node("other", first, first)

    def list_(self, bullet: str) -> Node:
        """A junction list: items begin with the same bullet in the same column."""
        column = self.tokens[self.at].column
        first = self.at
        items = []
        while self.at < len(self.tokens) and self.tokens[self.at].column == column and self.text() == bullet:
            self.at += 1
            self.lists.append(column)
            items.append(self.expression())
            self.lists.pop()
        return Node("and" if bullet == "/\\" else "or", first, self.at - 1, items)

    def keywords(self, words: tuple[str, ...]) -> Node:
        first = self.at
        children = []
        for word in words:
            self.expect(word)
            children.append(self.expression())
        return Node("if", first, self.at - 1, children)

    def expect(self, text: str) -> None:
        if self.text() != text:
            raise ValueError(f"{self.place()}: expected {text}")
        self.at += 1

    def let(self) -> Node:
        first = self.at
        self.expect("LET")
        children = []
        while self.text() != "IN":
            equals = definition_equals(list(self.tokens), self.at)
            if equals is None:
                raise ValueError(f"{self.place()}: expected a definition after LET")
            self.at = equals + 1
            children.append(self.expression())
        self.expect("IN")
        children.append(self.expression())
        return Node("other", first, self.at - 1, children)

    def cases(self) -> Node:
        first = self.at
        self.expect("CASE")
        children = [self.expression()]
        self.expect("->")
        children.append(self.expression())
        while self.text() == "[]":
            self.at += 1
            if self.text() == "OTHER":
                self.at += 1
            else:
                children.append(self.expression())
            self.expect("->")
            children.append(self.expression())
        return Node("other", first, self.at - 1, children)

    def quantifier(self) -> Node:
        first = self.at
        self.at += 1
        children = []
        while self.text() != ":":
            part = self.comparison()
            part.binder = True
            children.append(part)
            if self.text() == ",":
                self.at += 1
        self.expect(":")
        children.append(self.expression())
        return Node("other", first, self.at - 1, children)

    def brackets(self) -> Node:
        """Anything in brackets: expressions between separators. Columns do not matter inside until a list begins."""
        first = self.at
        opening = self.tokens[first].text
        closing = {"(": ")", "[": "]", "{": "}", "<<": ">>"}[opening]
        self.at += 1
        outer, self.lists = self.lists, []
        children: list[Node] = []
        separators: list[str] = []
        while self.text() != closing:
            if self.text() in {",", ":", "|->", "->"}:
                separators.append(self.text())
                self.at += 1
            elif self.text() == "EXCEPT":
                self.at += 1
                children.extend(self.updates())
            else:
                children.append(self.expression())
        self.expect(closing)
        self.lists = outer
        if opening in {"[", "{"}:
            mark_binders(children, separators)
        if closing in {">>", "]"} and self.text().startswith("_"):
            self.at += 1  # <<A>>_vars and [A]_vars
        return Node("other", first, self.at - 1, children)

    def updates(self) -> Iterator[Node]:
        """`![a].b = e, ![c] = f`: what follows an `=` is an expression, the `=` itself is not a comparison."""
        while self.text() == "!":
            first = self.at
            self.at += 1
            parts = []
            while self.text() in {"[", "."}:
                if self.text() == "[":
                    parts.append(self.brackets())
                else:
                    self.at += 2
            self.expect("=")
            parts.append(self.expression())
            yield Node("update", first, self.at - 1, parts)
            if self.text() == ",":
                self.at += 1


def mark_binders(children: list[Node], separators: list[str]) -> None:
    """`{x \\in S : P}`, `{e : x \\in S}`, `[x \\in S |-> e]`: the bounds are not comparisons."""
    if not children or not separators or separators[0] not in {":", "|->"}:
        return
    if children[0].kind == "compare":
        children[0].binder = True
    elif separators[0] == ":":
        for child in children[1:]:
            child.binder = True
    if "|->" in separators:
        for child in children[: separators.index("|->") + 1]:
            child.binder = child.binder or child.kind == "compare"


def read_expression(definition: Definition) -> Node:
    """The body of a definition as nodes. ValueError when it is beyond this reader."""
    return ExpressionReader(definition.tokens).read()
