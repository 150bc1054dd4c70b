"""Brings what is generated otherwise now into YAML that a person may have edited: all that they wrote stays as it is.

Only the text of the difference is written, where PyYAML says that its neighbours stand. To print the file anew from a
tree of it, as round-trip libraries do, would cost indentation, a comment before `---`, and keys that stand twice.
"""

import re
from collections import deque
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, SequenceNode
from yaml.resolver import Resolver

from scripts.errors import LakehouseError

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # which dbt reads with
ABSENT: Any = object()


def updated(text: str, before: Any, now: Any, where: str) -> str:
    """The text of a file of YAML with what is generated `now` where it was generated otherwise `before`.

    Models and columns are known by their names, tests by what they test. What a person changed or took away stays so,
    but for `meta.debezium`, by which a table is known.

    Raises:
        LakehouseError: the text is no YAML, or what is new has no place in it.
    """
    if text.startswith("\ufeff"):  # a mark of its encoding, which PyYAML does not count
        return "\ufeff" + updated(text[1:], before, now, where)
    problem = "what is new has no place in it"
    try:
        edit = _Edit(text)
        wanted = edit.merged(edit.root, yaml.load(text, Loader=LOADER), before, now)
        result = edit.applied()
        if yaml.load(result, Loader=LOADER) == wanted:
            return result
    except (yaml.YAMLError, ValueError, TypeError) as error:
        problem = f"it cannot be updated: {' '.join(str(error).split())}"
    raise LakehouseError(
        f"{where}: {problem}. Write it in the form in which make run writes such files, and run again."
    )


class _Alias:
    """A place where something stands that is written elsewhere."""

    def __init__(self, event: Any, target: Any) -> None:
        self.target, self.start_mark, self.end_mark = target, event.start_mark, event.end_mark
        self.tag, self.value = target.tag, target.value  # which composers look at


class _Nodes(Composer, Resolver):
    """The nodes of a text, with the places of aliases."""

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        self.events = deque(yaml.parse(text, Loader=LOADER))

    def check_event(self, *kinds: Any) -> bool:
        return isinstance(self.events[0], kinds)

    def peek_event(self) -> Any:
        return self.events[0]

    def get_event(self) -> Any:
        return self.events.popleft()

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        node = super().compose_node(parent, index)
        return _Alias(event, node) if isinstance(event, yaml.AliasEvent) else node


class _Edit:
    """A text, and the changes to make in it. Nodes are PyYAML's, or aliases of these."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: Any = _Nodes(text).get_single_node()
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        tokens = yaml.scan(text, Loader=LOADER)
        self.dashes = [token.start_mark.index for token in tokens if isinstance(token, yaml.BlockEntryToken)]
        self.changes: list[tuple[int, int, str]] = []
        self.done: dict[int, Any] = {}  # what nodes have become, of which several places may be aliases

    def applied(self) -> str:
        """The text with its changes: from behind, and of those at one place what is inside comes before what follows
        it.
        """
        text = self.text
        for start, end, new in sorted(self.changes, key=lambda change: change[:2])[::-1]:
            text = text[:start] + new.replace("\n", self.line_end) + text[end:]
        return text

    def merged(self, place: Any, value: Any, before: Any, now: Any, is_meta: bool = False) -> Any:
        """Note the changes of a node. Returns the value that it has with them."""
        if before == now:
            return value
        node = place.target if isinstance(place, _Alias) else place
        if id(node) in self.done:
            return self.done[id(node)]
        kinds = {type(one) for one in (value, now, *([] if before is ABSENT else [before]))}
        if kinds == {dict} and isinstance(node, MappingNode):
            self.done[id(node)] = self._merged_mapping(node, value, {} if before is ABSENT else before, now, is_meta)
        elif (
            kinds == {list}
            and isinstance(node, SequenceNode)
            and (_is_extended(value, before, now, is_meta) or self._has_comment_in_entries(node))
        ):
            self.done[id(node)] = self._merged_list(node, value, [] if before is ABSENT else before, now, is_meta)
        elif value == before or is_meta:
            self._replace(place, now)
            return now
        else:
            return value
        return self.done[id(node)]

    def _merged_mapping(self, node: Any, value: dict[Any, Any], before: dict[Any, Any], now: Any, is_meta: bool) -> Any:
        entries = {
            _plain(key): (key, of_key) for key, of_key in node.value
        }  # of a key that stands twice, the last one counts
        if "tests" in value:  # as dbt called them
            before, now = (
                {"tests" if name == "data_tests" else name: one for name, one in old.items()} for old in (before, now)
            )
        result = dict(value)
        for name in value:
            if name not in before or name in now:
                continue
            if is_meta or _is_all_generated(value[name], before[name]) and self._is_generated(*entries[name]):
                self._remove(node, entries[name])
                del result[name]
            elif value[name] != before[name] and isinstance(value[name], list):
                result[name] = self.merged(entries[name][1], value[name], before[name], [])
        new: dict[Any, dict[Any, Any]] = {}  # what stands in front → what comes behind it
        last = ABSENT
        for name, one in now.items():
            if name in entries:
                last = name
                result[name] = self.merged(
                    entries[name][1], value[name], before.get(name, ABSENT), one, is_meta or name == "debezium"
                )
            elif name not in value and (name not in before or is_meta):
                new.setdefault(last, {})[name] = one
                result[name] = one
        for after, ones in new.items():
            self._insert(node, [key for key, _ in node.value], entries[after][1] if after in entries else None, ones)
        return result

    def _merged_list(self, node: Any, value: list[Any], before: list[Any], now: list[Any], is_meta: bool) -> Any:
        places = {_identity(one): at for at, one in reversed(list(enumerate(value)))}
        known = {_identity(one): one for one in reversed(before)}
        result = list(value)
        new: dict[int, list[Any]] = {}
        last = -1
        for one in now:
            name = _identity(one)
            if name in places:
                last = places[name]
                result[last] = self.merged(node.value[last], value[last], known.get(name, ABSENT), one, is_meta)
            elif name not in known or is_meta:
                new.setdefault(last, []).append(one)
        names = {_identity(one) for one in now}
        gone = [
            at
            for at, (one, entry) in enumerate(zip(value, node.value, strict=True))
            if _identity(one) not in names and isinstance(one, dict) and known.get(_identity(one)) == one
            if not node.flow_style and self._is_generated(entry, entry)
        ]
        if len(gone) == len(value):  # what is left would be no list
            gone = []
        for at in range(len(value) - 1, -2, -1):
            if at in new:
                self._insert(node, node.value, node.value[at] if at >= 0 else None, new[at])
                result[at + 1 : at + 1] = new[at]
            if at in gone:
                self._remove_entry(node.value[at])
                del result[at]
        return result

    def _insert(self, node: Any, entries: list[Any], after: Any, new: Any) -> None:
        """Write entries behind one of a mapping or list, or before all of them."""
        if node.flow_style:
            text = ", ".join(_flow(new))
            at = after.end_mark.index if after else entries[0].start_mark.index if entries else node.end_mark.index - 1
            self._change(at, at, f", {text}" if after else f"{text}, " if entries else text)
            return
        start = self._start(node)
        indent = " " * (start - self._line(start))
        has_names = isinstance(new, list) and not isinstance(new[0], dict)
        text = (dump if has_names else dump_in_lines)(new).replace("\n", f"\n{indent}")[: -len(indent) or None]
        if not after:
            self._change(start, start, text + indent)
            return
        end = self._end_of_line(self._end(after))
        self._change(end, end, ("" if self.text[:end].endswith("\n") else "\n") + indent + text)

    def _remove(self, node: Any, entry: tuple[Any, Any]) -> None:
        at = next(at for at, one in enumerate(node.value) if one[0] is entry[0])
        start, end = entry[0].start_mark.index, self._end(entry[1])
        if at + 1 < len(node.value):
            end = node.value[at + 1][0].start_mark.index
        elif node.flow_style and at:
            start = self._end(node.value[at - 1][1])
        elif not node.flow_style:
            start, end = self._line(start), self._end_of_line(end)
        self._change(start, end, "")

    def _remove_entry(self, entry: Any) -> None:
        """Take an entry out of a list in lines."""
        self._change(self._line(entry.start_mark.index), self._end_of_line(self._end(entry)), "")

    def _is_generated(self, first: Any, last: Any) -> bool:
        """Whether lines hold nothing but some nodes: no comment, no anchor, and nothing of a person in front."""
        start, end = first.start_mark.index, self._end_of_line(self._end(last))
        return not re.search("[#&*]", self.text[start:end]) and not self.text[self._line(start) : start].strip(" -")

    def _has_comment_in_entries(self, node: Any) -> bool:
        """Whether somebody wrote into the entries of a list of mappings, which it would lose if it became another."""
        return all(isinstance(one, MappingNode) for one in node.value) and not self._is_generated(node, node)

    def _replace(self, node: Any, now: Any) -> None:
        start, end = node.start_mark.index, self._end(node)
        anchor = re.match(r"&\S+\s+", self.text[start:end])
        start += anchor.end() if anchor else 0
        (text,) = _flow([now])
        if _is_block(node) and now:
            start = self._start(node)
            text = dump_in_lines(now).rstrip("\n").replace("\n", "\n" + " " * (start - self._line(start)))
        is_bare = start == end and self.text[start - 1] in ":-"
        self._change(
            start, end, (" " if is_bare else "") + text + ("\n" if self.text[start:end].endswith("\n") else "")
        )

    def _change(self, start: int, end: int, new: str) -> None:
        self.changes.append((start, end, new))

    def _start(self, node: Any) -> int:
        """Where the first entry of a mapping or list in lines begins; of a list with its dash."""
        first = node.value[0][0] if isinstance(node, MappingNode) else node.value[0]
        index: int = first.start_mark.index
        if isinstance(node, SequenceNode):
            index = max(dash for dash in self.dashes if dash < index or dash == index and not _is_block(first))
        return index

    def _end(self, node: Any) -> int:
        """Where the text of a node ends, without what stands between it and the next one."""
        if _is_block(node):
            return self._end(node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1])
        index: int = node.end_mark.index
        return index

    def _line(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _end_of_line(self, index: int) -> int:
        """Where the next line begins; the place itself, if a line begins there."""
        if self.text[:index].endswith("\n"):
            return index
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end + 1


def _is_block(node: Any) -> bool:
    return isinstance(node, MappingNode | SequenceNode) and not node.flow_style and bool(node.value)


def _is_extended(value: Any, before: Any, now: list[Any], is_meta: bool) -> bool:
    """Whether new entries go into a list; else it becomes another one as a whole, or stays as somebody wrote it."""
    if before is ABSENT:
        return True
    if value != before:
        return is_meta or any(isinstance(one, dict) for one in (*now, *before))
    names, wanted = ([_identity(one) for one in ones] for ones in (before, now))
    stays = [name for name in names if name in wanted or not all(isinstance(one, dict) for one in before)]
    return [name for name in wanted if name in names] == stays


def _is_all_generated(value: Any, before: Any) -> bool:
    return value == before or (isinstance(value, list) and all(one in before for one in value))


def _identity(entry: Any) -> Any:
    """What an entry of a list is known by: a model or column by its name, a test by what it tests."""
    if isinstance(entry, dict):
        if "test_name" in entry:
            return "test", str(entry["test_name"])
        if "name" in entry:
            return "name", str(entry["name"])
        if len(entry) == 1:
            return "test", str(next(iter(entry)))
    return ("test", entry) if isinstance(entry, str) else repr(entry)


def _plain(key: Node) -> Any:
    return SafeConstructor().construct_object(key, deep=True) if key.tag != "tag:yaml.org,2002:merge" else ABSENT


class _Dumper(yaml.SafeDumper):
    """YAML without anchors: a list that stands twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """PyYAML would fold U+0085 as a line break that it reads back as a space; in double quotes it stands as an
        escape.
        """
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if "\x85" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)


def dump(content: Any, width: int = 110, in_flow: bool = False) -> str:
    """The text of generated YAML."""
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width, default_flow_style=in_flow
    )
    return text


class _InLines(_Dumper):
    """YAML in which a column, a test, and a list of names have one line each."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        is_quoted = "'" in data or "\x85" in data
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if is_quoted else None)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> SequenceNode:
        node = super().represent_sequence(tag, sequence, flow_style)
        entries = [one for one in node.value if isinstance(one, MappingNode)]
        for one in entries:
            names = {key.value for key, _ in one.value}
            one.flow_style = not names & {"columns", "config", "data_tests"}  # of models
        node.flow_style = not entries
        return node


_InLines.add_representer(str, _InLines.represent_str)


def dump_in_lines(content: Any) -> str:
    """The text of the generated YAML of a table."""
    text: str = yaml.dump(
        content, Dumper=_InLines, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=False
    )
    return text


def _flow(entries: Any) -> list[str]:
    """The texts of entries as they stand between brackets or braces."""
    ones: list[Any] = (
        [{name: one} for name, one in entries.items()] if isinstance(entries, dict) else [[one] for one in entries]
    )
    return [dump(one, width=10**9, in_flow=True).strip()[1:-1] for one in ones]
