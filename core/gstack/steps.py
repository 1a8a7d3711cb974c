"""The first step of a skill's body, for the routing hint (routing R4).

Bodies open with all sorts of lists that are no steps (when to use it, references, contents), so numbered steps come
first, then items outside such sections. Cold, imported by the hook's slow road: ``re`` only.
"""

import re

from gstack.routing.words import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
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
# What follows is compiled when a body has something that it may match: each compilation costs a hook that came here
# more than reading the file.

#: A heading that is a step: "Step 1: Load", "Phase 0 - Look", "1. Scope the work".
_STEP_HEADING = r"(?i)(?:\*\*)?(?:(?:step|phase|stage)\s+[01]\b|[01](?=[.):]))\s*[.:)\u2013\u2014-]*\s*(?P<text>.*)"
_STEP_STARTS = tuple("sSpP01")
#: Sections whose lists are no steps: the first word of their heading, or how it starts.
_ASIDE_WORDS = word_set(
    """when toc reference references resource resources why what scope about example examples feature features argument
    arguments parameter parameters prerequisite prerequisites requirement requirements trigger triggers voice
    purpose"""
)
_ASIDE_STARTS = (
    "table of contents", "contents", "additional", "see also", "related", "preamble", "plan mode", "skill invocation",
    "first-run", "overview", "activation",
)  # fmt: skip
_CONTENTS_LINK = r"\[[^\]]*\]\(#[^)]*\)\W*$"
#: Words that an instruction starts with, where a body has no list.
_VERBS = word_set(
    """
    add always analyse analyze apply ask assess begin build call capture change check choose clarify collect compare
    confirm convert copy create decide define delete deploy determine diagnose dispatch do ensure establish execute
    explain explore extract fetch fill find first fix follow gather generate get give go help identify inspect install
    interview investigate invoke keep launch list load locate look make map measure move never note open parse pick
    plan prefer prepare print produce propose provide pull put query read report reproduce research resolve respond
    return review rewrite run scan search select send set show spawn split start stop strip summarise summarize take
    tell test think trace translate try turn understand update use validate verify visit wait walk watch write
    """
)
#: Markup: the signs of which it needs one, the pattern, and what is left of it.
_MARKUP = (
    (
        ("<",),
        r"<!--.*?-->|</?(?:a|b|br|code|details|div|em|i|img|kbd|p|span|strong|su[bp]|summary)\b[^<>]*>",
        "",
    ),
    (("](",), r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
    (("*", "__", "~~"), r"(\*{1,3}|_{2,3}|~~)(?=\S)(.+?)(?<=\S)\1", r"\2"),
    (("`",), r"(`{1,3})(.+?)\1", r"\2"),
    ((">", "["), r"^(?:>\s*|\[[ xX]\]\s+)+", ""),
)
_BLANK = r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+"


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
            heading = match["heading"]
            may = heading.removeprefix("**").startswith(_STEP_STARTS)
            step = re.match(_STEP_HEADING, heading) if may else None
            aside = step is None and _is_aside(heading)
            if step is not None and step["text"]:
                yield "step", False, match.end(), step["text"].rstrip("# ")
        elif match["item"][0] != "[" or re.match(_CONTENTS_LINK, match["item"]) is None:
            number = match["number"]
            yield "bullet" if number is None else "number", aside, match.end(), match["item"]


def _is_aside(heading: str) -> bool:
    start = next((at for at, char in enumerate(heading) if char.isalnum() or char == "_"), len(heading))
    text = heading[start:].lower()
    return text.startswith(_ASIDE_STARTS) or _first_word(text) in _ASIDE_WORDS


def _first_word(text: str) -> str:
    """The word that ``text`` starts with, as far as a word of the tables may reach."""
    text = text[:20]
    return text[: next((at for at, char in enumerate(text) if not (char.isalnum() or char == "_")), len(text))]


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
        elif not code and _first_word(line.lstrip("*_` ")).lower() in _VERBS:
            return _clean(line)
    return ""


def _clean(text: str) -> str:
    text = text[:_LINE_LIMIT]
    for signs, pattern, replacement in _MARKUP:
        if any(sign in text for sign in signs):
            text = re.sub(pattern, replacement, text)
    # of white space and control characters only the space is printable
    text = " ".join(text.split()) if text.isprintable() else re.sub(_BLANK, " ", text)
    text = text.strip().strip("*").strip()
    if len(text) > STEP_LIMIT:
        text = text[: STEP_LIMIT - 1].rsplit(" ", 1)[0].rstrip(" ,;:-") + "\u2026"
    return text
