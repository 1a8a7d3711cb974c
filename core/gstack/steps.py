"""The first step of a skill's body, for the routing hint (routing R4).

Bodies open with all sorts of lists that are no steps (when to use it, references, contents), so numbered steps come
first, then items outside such sections. Cold, imported by the hook's slow road: ``re`` only.
"""

import re
from collections.abc import Iterator

#: How much of a body is looked at, in characters (routing R1 allows 64 KiB).
BODY_LIMIT = 64 * 1024
#: The longest step, in characters.
STEP_LIMIT = 200
#: How much of a line is cleaned of markup, in characters.
_LINE_LIMIT = 1000

_LINE = re.compile(
    r"\n(?:"
    r"(?P<fence>[ \t]{0,3}(?:```|~~~))"
    r"|#{1,6}[ \t]+(?P<heading>\S.*)"
    r"|[ ]{0,3}(?:(?P<number>\d{1,3})[.)]|[-*+])[ \t]+(?P<item>\S.*)"
    r")"
)
#: A heading that is a step: "Step 1: Load", "Phase 0 - Look", "1. Scope the work".
_STEP_HEADING = re.compile(
    r"(?:\*\*)?(?:(?:step|phase|stage)\s+[01]\b|[01](?=[.):]))\s*[.:)\u2013\u2014-]*\s*(?P<text>.*)", re.IGNORECASE
)
#: Sections whose lists are no steps.
_ASIDE = re.compile(
    r"\W*(?:when\b|table of contents|contents|toc\b|references?\b|resources?\b|additional|see also|related|preamble"
    r"|plan mode|skill invocation|first-run|why\b|what\b|scope\b|overview|about\b|examples?\b|features?\b|arguments?\b"
    r"|parameters?\b|prerequisites?\b|requirements?\b|activation|triggers?\b|voice\b|purpose\b)",
    re.IGNORECASE,
)
_CONTENTS_LINK = re.compile(r"\[[^\]]*\]\(#[^)]*\)\W*$")
#: Words that an instruction starts with, where a body has no list.
_VERB = re.compile(
    r"(?:"
    r"add|always|analyse|analyze|apply|ask|assess|begin|build|call|capture|change|check|choose|clarify|"
    r"collect|compare|confirm|convert|copy|create|decide|define|delete|deploy|determine|diagnose|dispatch|"
    r"do|ensure|establish|execute|explain|explore|extract|fetch|fill|find|first|fix|follow|gather|"
    r"generate|get|give|go|help|identify|inspect|install|interview|investigate|invoke|keep|launch|list|"
    r"load|locate|look|make|map|measure|move|never|note|open|parse|pick|plan|prefer|prepare|print|produce|"
    r"propose|provide|pull|put|query|read|report|reproduce|research|resolve|respond|return|review|rewrite|"
    r"run|scan|search|select|send|set|show|spawn|split|start|stop|strip|summarise|summarize|take|tell|"
    r"test|think|trace|translate|try|turn|understand|update|use|validate|verify|visit|wait|walk|watch|"
    r"write"
    r")\b",
    re.IGNORECASE,
)
_MARKUP = (
    (re.compile(r"<!--.*?-->|</?(?:a|b|br|code|details|div|em|i|img|kbd|p|span|strong|su[bp]|summary)\b[^<>]*>"), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"(\*{1,3}|_{2,3}|~~)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(`{1,3})(.+?)\1"), r"\2"),
    (re.compile(r"^(?:>\s*|\[[ xX]\]\s+)+"), ""),
    (re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+"), " "),
)


def first_step(body: str) -> str:
    """The first step of a skill's body on one line, at most 200 characters, without markup; ``""`` when it has none."""
    text = "\n" + body[:BODY_LIMIT]
    bullet = last = ""
    for kind, aside, place, found in _lines(text):
        if kind == "step" or (kind == "number" and not aside):
            step = _clean(found if kind == "step" else _whole_item(text, place, found))
            if step:
                return step
        elif kind != "step" and not (bullet if not aside else last):
            step = _clean(_whole_item(text, place, found))
            if not aside:
                bullet = step
            last = last or step
    return bullet or _imperative(text) or last


def _lines(text: str) -> "Iterator[tuple[str, bool, int, str]]":
    """Step headings and list items outside code: kind, whether its section is an aside, where it ends, its text."""
    code = aside = False
    for match in _LINE.finditer(text):
        kind = match.lastgroup
        if kind == "fence":
            code = not code
        elif code:
            continue
        elif kind == "heading":
            step = _STEP_HEADING.match(match["heading"])
            aside = step is None and _ASIDE.match(match["heading"]) is not None
            if step is not None and step["text"]:
                yield "step", False, match.end(), step["text"].rstrip("# ")
        elif _CONTENTS_LINK.match(match["item"]) is None:
            number = match["number"]
            yield "bullet" if number is None else "number", aside, match.end(), match["item"]


def _whole_item(text: str, end: int, first: str) -> str:
    """A list item with the indented lines that go on below it."""
    parts = [first]
    while len(parts) < 6 and text.startswith(("\n  ", "\n\t"), end):
        stop = text.find("\n", end + 1)
        line = text[end:stop].strip() if stop >= 0 else text[end:].strip()
        if not line or re.match(r"[-*+>|#`~]|\d+[.)]\s", line):
            break
        parts.append(line)
        if stop < 0:
            break
        end = stop
    return " ".join(parts)


def _imperative(text: str) -> str:
    """The first line of prose that starts as an instruction does."""
    code = False
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith(("```", "~~~")):
            code = not code
        elif not code and _VERB.match(line.lstrip("*_` ")) is not None:
            return _clean(line)
    return ""


def _clean(text: str) -> str:
    text = text[:_LINE_LIMIT]
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    text = text.strip().strip("*").strip()
    if len(text) > STEP_LIMIT:
        text = text[: STEP_LIMIT - 1].rsplit(" ", 1)[0].rstrip(" ,;:-") + "\u2026"
    return text
