"""Expansion of TOML data in which one table stands for many: groups with shared keys, families, and ``extends``; and of
names of patterns.

A table of a list can hold tables of its own kind, under the name of the list: its other keys are then defaults of
these. With ``each = { N = [2, 4, 8] }`` a table stands for one table for each value, with ``{N}`` replaced in every
string. The last of several names varies fastest. A string that is ``"{N}"`` alone becomes the value itself, and
``{N.key}`` is a key of a value that is a table. ``{ each = …, text = "…" }`` is the same in a list of strings.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

Table = dict[str, Any]

_NAME = re.compile(r"\{(\w+(?:\.\w+)?)\}")


_MOST = 1000
"""Tables that one stands for."""


def expanded(value: Any, name: str = "") -> Any:
    """Return data without groups and families; ``name`` is that of the list whose items the data is."""
    if isinstance(value, dict):
        return {key: expanded(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(member, name) for item in value for member in _group(item, name)]
    return value


def merged(base: Table, over: Table) -> Table:
    """Return both tables as one: tables of the same name are merged, and of all else ``over`` has the last word."""
    both = base | over
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            both[key] = merged(base[key], over[key])
    return both


def extended(base: Table, over: Table) -> Table:
    """Return a variant's data with those that it extends: the rules of both apply."""
    both = merged(base, over)
    if isinstance(base.get("rules"), list) and isinstance(over.get("rules"), list):
        both["rules"] = base["rules"] + over["rules"]
    return both


def with_patterns(table: Table) -> Table:
    """Return a variant's data with the expressions of ``[patterns]`` in place of their names in the rules.

    A name that the table does not have stays, and is no expression.
    """
    patterns, rules = table.get("patterns"), table.get("rules")
    if not isinstance(patterns, dict) or not isinstance(rules, list):
        return table
    return table | {"rules": [_without_names(rule, patterns) for rule in rules]}


def _without_names(rule: Any, patterns: Table) -> Any:
    if not isinstance(rule, dict):
        return rule
    conditions = {key: rule[key] for key in ("requires", "forbids") if isinstance(rule.get(key), list)}
    return rule | {
        key: [patterns.get(name, name) if isinstance(name, str) else name for name in names]
        for key, names in conditions.items()
    }


def _group(item: Any, name: str) -> Iterator[Any]:
    """Yield the items that an item of the list ``name`` stands for."""
    for shared in _family(item):
        members = shared.get(name) if isinstance(shared, dict) else None
        if not isinstance(members, list):
            yield shared
            continue
        defaults = {key: value for key, value in shared.items() if key != name}
        for member in (member for listed in members for member in _family(listed)):
            yield merged(defaults, member) if isinstance(member, dict) else member


def _family(item: Any) -> Iterator[Any]:
    """Yield the items that an item stands for, one for each value of the names in ``each``."""
    each = item.get("each") if isinstance(item, dict) else None
    if not isinstance(each, dict) or not all(isinstance(values, list) for values in each.values()):
        yield item  # a wrong `each` is then a key that no table has
        return
    number = prod(map(len, each.values()))
    if number > _MOST:
        raise ValueError(f"an `each` that stands for {number:,} tables; {_MOST:,} are the most")
    table = {key: value for key, value in item.items() if key != "each"}
    for values in product(*each.values()):
        names = dict(zip(each, values, strict=True))
        keys = {
            f"{name}.{key}": below for name, of in names.items() if isinstance(of, dict) for key, below in of.items()
        }
        member = _filled(table, names | keys)
        yield member["text"] if member.keys() == {"text"} else member


def _filled(value: Any, binding: Mapping[str, Any]) -> Any:
    """Return a value with the names of a family replaced in its strings and keys."""
    if isinstance(value, dict):
        return {_filled(key, binding): _filled(below, binding) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, binding) for below in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = _NAME.fullmatch(value)
    if whole and whole[1] in binding:
        return binding[whole[1]]
    return _NAME.sub(lambda found: str(binding.get(found[1], found[0])), value)
