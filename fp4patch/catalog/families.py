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

Table = dict[str, Any]
Wrong = Callable[[str, str, str], None]
"""Notes a mistake: its key, the expectation and the finding."""

_NAME = re.compile(r"\{(\w+(?:\.\w+)?)\}")


class Placed(Table):
    """A table of an expanded list, with its key in the file in which it is written."""

    def __init__(self, table: Table, key: str, file: str = "") -> None:
        super().__init__(table)
        self.key, self.file = key, file


def expanded(value: Any, wrong: Wrong, key: str = "", name: str = "") -> Any:
    """Return data without groups and families. ``key`` is where it is written, and ``name`` the last part of that."""
    if isinstance(value, dict):
        table = {below: expanded(item, wrong, f"{key}.{below}".lstrip("."), below) for below, item in value.items()}
        return Placed(table, value.key) if isinstance(value, Placed) else table
    if isinstance(value, list):
        members = [member for at, item in enumerate(value) for member in _group(item, name, f"{key}[{at}]", wrong)]
        return [expanded(member, wrong, getattr(member, "key", key), name) for member in members]
    return value


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
    known = {_subject(rule): rule for rule in rules(base)}
    for rule in rules(over):
        same: Table = known.get(_subject(rule), {})
        known[_subject(rule)] = Placed(merged(same, rule), rule.key, rule.file)
    both = merged(base, over)
    return both | {"rules": list(known.values())} if rules(base) else both


def rules(data: Table) -> list[Placed]:
    """Return the rules of a variant's data; what is no table is not among them."""
    items = data.get("rules")
    return [item for item in items if isinstance(item, Placed)] if isinstance(items, list) else []


def _subject(rule: Table) -> str:
    return repr((rule.get("probes"), rule.get("arch")))


def _group(item: Any, name: str, key: str, wrong: Wrong) -> Iterator[Any]:
    """Yield the items that an item of the list ``name`` stands for."""
    members = item.get(name) if isinstance(item, dict) else None
    if not isinstance(members, list):
        yield from _family(item, key, wrong)
        return
    for shared in _family({key: value for key, value in item.items() if key != name} | {"": members}, key, wrong):
        own = {key: value for key, value in shared.items() if key}
        for at, filled in enumerate(shared[""]):
            for member in _family(filled, f"{key}.{name}[{at}]", wrong):
                table = isinstance(member, Placed)
                yield Placed(merged(own, member), member.key + shared.key.removeprefix(key)) if table else member


def _family(item: Any, key: str, wrong: Wrong) -> Iterator[Any]:
    """Yield the items that an item stands for, one for each value of the names in ``each``."""
    if not isinstance(item, dict):
        yield item
        return
    each, table = item.get("each", {}), {name: value for name, value in item.items() if name != "each"}
    if not isinstance(each, dict) or not all(isinstance(values, list) and values for values in each.values()):
        wrong(f"{key}.each", "a list of values for each name: { N = [2, 4, 8] }", repr(each))
        return
    names = set(_NAME.findall(repr(table)))
    for name, values in each.items():
        keys: list[set[str]] = [{key for key, _ in _flat({name: value})} for value in values]
        used = {whole for whole in names if whole.partition(".")[0] == name}
        if not used:
            wrong(f"{key}.each.{name}", f"{{{name}}} in a string of the table", "none")
        for unknown in sorted(used - keys[0].intersection(*keys)):
            wrong(f"{key}.each.{name}", f"{{{unknown}}} among its values", "values without it")
    for values in product(*each.values()):
        binding = dict(zip(each, values, strict=True))
        flat = dict(_flat(binding))
        member = _filled(table, flat) if binding else table
        shown = ", ".join(f"{name} = {_first(value)}" for name, value in binding.items())
        is_text = binding and member.keys() == {"text"}
        yield member["text"] if is_text else Placed(member, f"{key} ({shown})" if shown else key)


def _flat(binding: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield ``N`` or ``N.key`` of each name, with its value."""
    for name, value in binding.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", below) for key, below in value.items())
        else:
            yield name, value


def _first(value: Any) -> Any:
    """Return a value as a place shows it: of a table its first key."""
    return next(iter(value.values()), "") if isinstance(value, dict) else value


def _filled(value: Any, binding: Mapping[str, Any]) -> Any:
    """Return a value with the names of a family replaced in its strings."""
    if isinstance(value, dict):
        return {key: _filled(below, binding) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, binding) for below in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = _NAME.fullmatch(value)
    if whole and whole[1] in binding:
        return binding[whole[1]]
    return _NAME.sub(lambda found: str(binding.get(found[1], found[0])), value)
