r"""Which actions a specification has: the names in `Next`, including those in groups.

`Next` and the groups below it contain nothing but `\/`, quantifiers and names. A name whose definition
mentions the next state in any other way is an action.
"""

from __future__ import annotations

from refmq.verify.spec.syntax import Definition, definitions_of, mentions_next_state


def actions_of_next(text: str, root: str = "Next") -> list[str]:
    """The actions of a module in the order in which `Next` names them. ValueError when there is no `Next`."""
    definitions = definitions_of(text)
    if root not in definitions:
        raise ValueError(f"the module has no definition of {root}")
    found: list[str] = []
    collect(root, definitions, found)
    return found


def collect(name: str, definitions: dict[str, Definition], found: list[str]) -> None:
    for token in definitions[name].tokens:
        if token.text not in definitions or token.text in found or not mentions_next_state(token.text, definitions):
            continue
        if is_group(definitions[token.text], definitions):
            collect(token.text, definitions, found)
        else:
            found.append(token.text)


def is_group(definition: Definition, definitions: dict[str, Definition]) -> bool:
    """Whether a definition only names other actions."""
    if definition.primed or any(token.text == "/\\" for token in definition.tokens):
        return False
    return any(name in definitions and mentions_next_state(name, definitions) for name in definition.names)
