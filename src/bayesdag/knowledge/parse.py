"""Formats of knowledge: mappings, YAML, Tetrad's text and pgmpy's object.

Whatever the source, `read` returns plain parts (`required`, `forbidden`, `tiers`, `roots`,
`sinks`, `beliefs`, `assumed_roots`) and `normal_form` turns one part into tuples of names.
Whether the parts agree with each other and with a table is the business of `knowledge`.
"""

import numbers
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bayesdag.errors import KnowledgeError, did_you_mean
from bayesdag.text import why_unreadable

PARTS = ("required", "forbidden", "tiers", "roots", "sinks", "beliefs", "assumed_roots")
ALIASES = {"required_edges": "required", "forbidden_edges": "forbidden", "temporal_order": "tiers"}
ARROWS = (" -> ", " → ", "->", "→")  # spaced ones first: a name may hold a bare arrow


def read(source: object) -> dict[str, object]:
    """Parts of a mapping, of the file at a path, or of pgmpy's ExpertKnowledge; {} for None."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return _parts(source)
    if isinstance(source, str | Path):
        return _from_file(Path(source))
    if hasattr(source, "required_edges") and hasattr(source, "forbidden_edges"):
        return _from_expert(source)
    raise KnowledgeError(
        f"knowledge cannot be read from {type(source).__name__}; "
        "give a mapping, the path of a YAML file, or a Knowledge"
    )


def normal_form(part: str, statements: object) -> tuple[object, ...]:
    """One part as tuples of names, each statement once, in the order given."""
    items = _listed(statements)
    if part in ("required", "forbidden"):
        return tuple(dict.fromkeys(_edge(item, part) for item in items))
    if part == "tiers":
        tiers = (tuple(dict.fromkeys(map(_name, _listed(tier)))) for tier in items)
        return tuple(tier for tier in tiers if tier)
    if part == "beliefs":
        return _beliefs(items)
    return tuple(dict.fromkeys(map(_name, items)))


def _parts(source: Mapping[object, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in source.items():
        part = ALIASES.get(str(key), str(key))
        if part not in PARTS:
            hint = did_you_mean(key, [*PARTS, *ALIASES])
            near = f"; {hint}" if hint.endswith("?") else "."  # else it lists the parts, too
            raise KnowledgeError(
                f"knowledge has no part called {key!r}{near} The parts are: {', '.join(PARTS)}"
            )
        if part in found:
            raise KnowledgeError(f"knowledge gives {part!r} twice (as {key!r} too); keep one")
        found[part] = value
    return found


def _from_expert(source: object) -> dict[str, object]:
    """Parts of an object with pgmpy's attributes."""
    if getattr(source, "search_space", None):
        raise KnowledgeError(
            "a search space cannot be read from ExpertKnowledge; "
            "call its limit_search_space(columns) first, then clear search_space"
        )
    return {part: getattr(source, name, None) for name, part in ALIASES.items()}


def _from_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"the knowledge file {str(path)!r} {why_unreadable(error)}") from error
    try:
        return _from_tetrad(text) if text.lstrip().startswith("/knowledge") else _from_yaml(text)
    except KnowledgeError as error:
        raise KnowledgeError(f"knowledge file {path.name!r}: {error}") from error


def _from_yaml(text: str) -> dict[str, object]:
    """Parts of a YAML text whose scalars all stay text, so `no`, `007` and `1.50` are names."""
    import yaml

    class Loader(yaml.BaseLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = [key for key in keys if keys.count(key) > 1]
            if twice:
                raise KnowledgeError(f"{twice[0]!r} is given twice; keep one")
            return super().construct_mapping(node, deep=deep)

    try:
        content = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise KnowledgeError(f"this is not valid YAML: {error}") from error
    if content in (None, ""):
        return {}
    if not isinstance(content, Mapping):
        raise KnowledgeError(f"expected parts such as 'required:', found {str(content)[:40]!r}")
    return _parts(content)


def _from_tetrad(text: str) -> dict[str, object]:
    """Parts of Tetrad's format; a tier marked `*` forbids the edges within it."""
    tiers: dict[int, list[str]] = {}
    edges: dict[str, list[list[str]]] = {"forbiddirect": [], "requiredirect": []}
    section = None
    for number, line in enumerate(text.splitlines(), start=1):
        words = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]
        if not words or words[0].startswith(("//", "/knowledge")):
            continue
        if len(words) == 1 and words[0].lower() in ("addtemporal", *edges):
            section = words[0].lower()
        elif section == "addtemporal" and re.fullmatch(r"[1-9]\d*\*?", words[0]):
            tiers.setdefault(int(words[0].rstrip("*")), []).extend(words[1:])
            if words[0].endswith("*"):
                edges["forbiddirect"] += [[a, b] for a in words[1:] for b in words[1:] if a != b]
        elif section in edges and len(words) == 2:
            edges[section].append(words)
        else:
            raise KnowledgeError(
                f"line {number} is not understood: {line.strip()!r}; expected addtemporal with "
                "lines 'tier name ...', or forbiddirect or requiredirect with 'cause effect'"
            )
    ordered = [tiers[number] for number in sorted(tiers)]
    required, forbidden = edges["requiredirect"], edges["forbiddirect"]
    return {"required": required, "forbidden": forbidden, "tiers": ordered}


def _listed(statements: object) -> list[object]:
    """Statements as a list; one alone needs no brackets, and a set is put in a fixed order."""
    if statements is None or (isinstance(statements, str) and not statements):
        return []
    if isinstance(statements, str | numbers.Number | Mapping):
        return [statements]
    if isinstance(statements, set | frozenset):
        return sorted(statements, key=repr)
    if isinstance(statements, Iterable):
        return list(statements)
    raise KnowledgeError(f"expected a list of statements, found {statements!r}")


def _edge(statement: object, part: str) -> tuple[str, str]:
    """(cause, effect) of "A -> B" or [A, B]."""
    names = _split(statement) if isinstance(statement, str) else statement
    if not isinstance(names, list | tuple) or len(names) != 2:
        raise KnowledgeError(
            f"{part}: {statement!r} is not one edge; write 'cause -> effect', or "
            "[cause, effect] where a name contains an arrow"
        )
    cause, effect = map(_name, names)
    if cause == effect:
        raise KnowledgeError(f"{part}: {cause} -> {effect} leads from a variable to itself")
    return cause, effect


def _split(text: str) -> list[str]:
    for arrow in ARROWS:
        if arrow in text:
            return [name.strip() for name in text.split(arrow)]
    return [text]


def _beliefs(items: Iterable[object]) -> tuple[tuple[str, str, float], ...]:
    """(cause, effect, probability) of {"A -> B": 0.9} or [A, B, 0.9]."""
    pairs: list[tuple[object, object]] = []
    for item in items:
        if isinstance(item, Mapping):
            pairs += item.items()
        elif isinstance(item, list | tuple) and len(item) in (2, 3):
            pairs.append((item[0] if len(item) == 2 else item[:2], item[-1]))
        else:
            raise KnowledgeError(
                f"beliefs: {item!r} is not a belief; write 'cause -> effect: probability' "
                "or [cause, effect, probability]"
            )
    beliefs: dict[tuple[str, str], float] = {}
    for statement, value in pairs:
        edge = _edge(statement, "beliefs")
        probability = _probability(edge, value)
        if beliefs.setdefault(edge, probability) != probability:
            raise KnowledgeError(
                f"beliefs: {' -> '.join(edge)} has two probabilities, "
                f"{beliefs[edge]:g} and {probability:g}; keep one"
            )
    return tuple((*edge, probability) for edge, probability in beliefs.items())


def _probability(edge: tuple[str, str], value: Any) -> float:
    try:
        probability = float(value)
    except (TypeError, ValueError):
        probability = float("nan")
    if 0 < probability < 1:
        return probability
    certain = {0.0: "; list the edge under 'forbidden'", 1.0: "; list the edge under 'required'"}
    hint = certain.get(probability, "")
    raise KnowledgeError(
        f"beliefs: {' -> '.join(edge)} has {value!r}; a belief lies strictly between 0 and 1{hint}"
    )


def _name(value: object) -> str:
    """A column name as text; 3 is the column called "3"."""
    if isinstance(value, str | numbers.Real) and not isinstance(value, bool):
        return str(value)
    raise KnowledgeError(f"{value!r} is not a column name; put the name in quotes")
