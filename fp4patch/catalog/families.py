"""Expansion of TOML data in which one table stands for many: groups with shared keys, families, and ``extends``.

A table of a list can hold tables of its own kind, under the name of the list: its other keys are then defaults of
these. With ``each = { N = [2, 4, 8] }`` a table stands for one table for each value, with ``{N}`` replaced in every
string. The last of several names varies fastest. A string that is ``"{N}"`` alone becomes the value itself, and
``{N.key}`` is a key of a value that is a table. ``{ each = …, text = "…" }`` is the same in a list of strings.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from fp4patch.core.problem import Problem

Table = dict[str, Any]


class Placed(Table):
    """A table of an expanded list, with its place in the file in which it is written."""

    def __init__(self, table: Table, place: str) -> None:
        super().__init__(table)
        self.place = place


def expanded(data: Table, file: str, problems: list[Problem], prefix: str = "") -> Table:
    """Return the data of a file without groups and families; what is wrong with these is added to the problems.

    ``prefix`` comes first in the places of tables.
    """

    def wrong(expected: str, found: str, place: str) -> None:
        problems.append(Problem(expected, found, file=file, nearest=place.removeprefix(prefix)))

    return {key: _value(value, key, prefix + key, wrong) for key, value in data.items()}


def merged(base: Table, over: Table) -> Table:
    """Return both tables as one: tables of the same name are merged, and of all else ``over`` has the last word."""
    both = base | over
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            both[key] = merged(base[key], over[key])
    return both


def extended(base: Table, over: Table) -> Table:
    """Return a variant's data with those that it extends.

    Rules of both apply. A rule with the probes and the architectures of one of the base is merged with that one.
    """
    rules = {_subject(rule): rule for rule in _rules(base)}
    for rule in _rules(over):
        known = rules.get(_subject(rule), {})
        rules[_subject(rule)] = Placed(merged(known, rule), rule.place) if isinstance(rule, Placed) else rule
    both = merged(base, over)
    return both | {"rules": list(rules.values())} if _rules(base) else both


def inherited(base: Table, over: Table) -> Iterator[str]:
    """Yield the keys of ``base`` that ``over`` does not have: ``image.torch``. Rules have places of their own."""
    yield from base.keys() - over.keys() - {"rules"}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            yield from (f"{key}.{below}" for below in inherited(base[key], over[key]))


def _rules(data: Table) -> list[Table]:
    rules = data.get("rules")
    return rules if isinstance(rules, list) else []


def _subject(rule: object) -> str:
    return repr((rule.get("probes"), rule.get("arch")) if isinstance(rule, dict) else rule)


def places(data: object, path: str = "", place: str = "") -> dict[str, str]:
    """Return the places of expanded tables, by their keys in the expanded data: ``edits[7]``.

    A table is left out if its place follows from its key, or from the place of the table that it is in.
    """
    found = {}
    if isinstance(data, Placed) and data.place != place:
        found[path] = place = data.place
    if isinstance(data, dict):
        for key, value in data.items():
            end = f".{key}" if path else key
            found |= places(value, path + end, place + end)
    elif isinstance(data, list):
        for number, item in enumerate(data):
            found |= places(item, f"{path}[{number}]", f"{place}[{number}]")
    return found


_Wrong = Callable[[str, str, str], None]


def _value(value: object, key: str, place: str, wrong: _Wrong) -> Any:
    if isinstance(value, dict):
        table = {name: _value(below, name, f"{place}.{name}", wrong) for name, below in value.items()}
        return Placed(table, value.place) if isinstance(value, Placed) else table
    if isinstance(value, list):
        return [
            _value(Placed(member, where) if isinstance(member, dict) else member, key, where, wrong)
            for number, item in enumerate(value)
            for member, where in _members(item, key, f"{place}[{number}]", wrong)
        ]
    return value


def _members(item: Any, key: str, place: str, wrong: _Wrong) -> Iterator[tuple[Any, str]]:
    """Yield the items that an item of the list ``key`` stands for, each with its place."""
    if not isinstance(item, dict) or not ("each" in item or isinstance(item.get(key), list)):
        yield item, place
        return
    shared = {name: value for name, value in item.items() if name not in ("each", key)}
    used: set[str] = set()
    bindings = list(_bindings(item.get("each", {}), place, wrong))
    for binding in bindings:
        own, values = _filled(shared, binding, used), ", ".join(_shown(binding))
        suffix = f" with {values}" if values else ""
        if key not in item:
            yield (own["text"] if own.keys() == {"text"} else own), place + suffix
        for number, below in enumerate(item.get(key, ())):
            for member, at in _members(_filled(below, binding, used), key, f"{place}.{key}[{number}]", wrong):
                yield (merged(own, member) if isinstance(member, dict) else member), at + suffix
    names = {name for binding in bindings for name in binding}
    for name in sorted(names - used):
        wrong(f"{{{name}}} in a string of the table", "none", f"{place}.each.{name}")
    for name in sorted(used - names):
        wrong(f"a key of the values of {name.partition('.')[0]}", f"{{{name}}}", f"{place}.each")


def _bindings(each: object, place: str, wrong: _Wrong) -> Iterator[dict[str, Any]]:
    """Yield the values of the names of a family, as ``{"N": 2, "T.name": "half"}``."""
    if not isinstance(each, dict) or not all(isinstance(values, list) and values for values in each.values()):
        wrong("a list of values for each name: { N = [2, 4, 8] }", repr(each), f"{place}.each")
        return
    for name, values in each.items():
        if len({tuple(sorted(value)) if isinstance(value, dict) else () for value in values}) > 1:
            wrong("the same keys in each value", repr(values), f"{place}.each.{name}")
            return
    for values in product(*each.values()):
        yield dict(_flat(zip(each, values, strict=True)))


def _flat(pairs: Any) -> Iterator[tuple[str, Any]]:
    for name, value in pairs:
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", below) for key, below in value.items())
        else:
            yield name, value


def _shown(binding: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``N = 4`` for each name; of a value that is a table its first key."""
    seen = set()
    for name, value in binding.items():
        if (first := name.partition(".")[0]) not in seen:
            seen.add(first)
            yield f"{first} = {value}"


def _filled(value: Any, binding: Mapping[str, Any], used: set[str]) -> Any:
    """Return a value with the names of a family replaced in its strings, and note the names that were found.

    A name with a key that its values do not have is noted, too, and stays.
    """
    if not binding:
        return value
    if isinstance(value, dict):
        return {key: _filled(below, binding, used) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, binding, used) for below in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value.startswith("{") and value[1:-1] in binding and value.endswith("}"):
        used.add(value[1:-1])
        return binding[value[1:-1]]

    def text(found: re.Match[str]) -> str:
        used.add(found[1])
        return str(binding.get(found[1], found[0]))

    names = "|".join(sorted({re.escape(name.partition(".")[0]) for name in binding}))
    return re.sub(rf"{{((?:{names})(?:\.\w+)?)}}", text, value)
