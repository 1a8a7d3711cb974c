"""Words of prompts and triggers: tokens, stems, and the words that carry no meaning of their own.

Hot: imported by the hook, so builtins only. Hand-written because ``re`` and ``unicodedata`` cost more than the whole
scoring of a prompt; ASCII text goes through ``str.translate`` in C. Rules: spec, routing R2.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

#: Characters that vanish inside a word: apostrophes of any kind (so "don't" and "dont" are one word), invisible
#: joiners.
_VANISH = "'\u2018\u2019\u201b\u02bc\u2032\uff07\u00ad\u200c\u200d\u2060\ufeff"
#: Connectors that Unicode lets stand in an identifier, but that split words here (hyphens do anyway).
_SPLIT = "_\u203f\u2040\u2054\ufe33\ufe34\ufe4d\ufe4e\ufe4f\uff3f\u00b7\u0387"

#: ASCII in one step: letters and digits stay, apostrophes vanish, everything else becomes a space.
ASCII: "dict[int, str | None]" = {
    code: None if chr(code) in _VANISH else chr(code) if chr(code).isalnum() else " " for code in range(128)
}

#: To look up so many lines in a text costs as much as a table of all.
_FEW = 30

_GONE: "dict[int, None]" = {ord(char): None for char in _VANISH}


def tokens(text: str) -> "list[str]":
    """The words of ``text`` in order, lower-cased: runs of Unicode letters, marks and digits (R2).

    Apostrophes vanish, hyphens and underscores split. Never raises; splitting the joined result again changes nothing.
    """
    text = text.lower()
    if text.isascii():
        return text.translate(ASCII).split()
    chars = [char for char in set(text) if char > "\x7f"]
    if not all(char.isalnum() or not ("a" + char).isidentifier() for char in chars):
        # there are combining marks: a letter and its mark are the same word as the composed letter
        from unicodedata import normalize

        text = normalize("NFC", text.translate(_GONE))
        chars = [char for char in set(text) if char > "\x7f"]
    return text.translate(ASCII | {ord(char): _class_of(char) for char in chars}).split()


def _class_of(char: str) -> "str | None":
    if char in _VANISH:
        return None
    if char in _SPLIT:
        return " "
    # isidentifier knows the combining marks, which are no alphanumerics
    return char if char.isalnum() or ("a" + char).isidentifier() else " "


def stem(word: str) -> str:
    """A light stem, so that "failing", "fails" and "failed" are one word (R2). English ASCII words only.

    Plural ``s``, ``-ed`` and ``-ing`` go (a doubled consonant becomes single, ``-ies`` and ``-ied`` become ``y``); then
    a final ``e`` goes behind c, g, s, u, v or z with three letters left, behind others with five left: "merging" is
    "merge", but "plane" isn't "plan".
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s"):
        return _without_e(_singular(word))
    for ending in ("ing", "ed"):
        if word.endswith(ending):
            base = word[: -len(ending)]
            if len(base) >= 3 and not base.endswith("e") and _has_vowel(base):
                return _without_e(_undoubled(base))
            return word
    return _without_e(word)


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def _has_vowel(word: str) -> bool:
    return not set("aeiouy").isdisjoint(word)


def _undoubled(base: str) -> str:
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeioulsz":
        return base[:-1]
    return base


def _without_e(word: str) -> str:
    if word.endswith("ie") and len(word) > 4:
        return word[:-2] + "y"
    if word.endswith("e") and len(word) > 3 and (word[-2] in "cgsuvz" or len(word) > 5):
        return word[:-1]
    return word


def line_numbers(text: str, wanted: "Collection[str]") -> "dict[str, int]":
    """Which of ``wanted`` are lines of ``text``, and the number of each, from 0.

    ``text`` has a line break at both ends, so that a few can be looked up without an object for each line.
    """
    if len(wanted) > _FEW:
        numbers = {line: number for number, line in enumerate(text.split("\n")[1:-1])}
        return {one: numbers[one] for one in wanted if one in numbers}
    found = {}
    for one in wanted:
        at = text.find("\n" + one + "\n")
        if at >= 0 and "\n" not in one:
            found[one] = text.count("\n", 0, at)
    return found


def word_set(text: str) -> "frozenset[str]":
    """The words of a table that is written as a text."""
    return frozenset(text.split())


#: Words of any English sentence: articles, pronouns, prepositions, auxiliaries, politeness. They are dropped from
#: triggers and prompts alike. Words that limit or turn round what is said (no, not, don't, but, only, without, just)
#: are *not* among them: without them "test but don't fix" would be "test, fix".
COMMON = word_set(
    """
    a an the this that these those there here some any each such
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
    im ive id ill were weve well youre youve youll hes shes thats theres lets whos
    is am are was be been being do does did done doing has have had having
    will would can could should shall may might must
    of on in at to for from with by about into onto over under up out off as between through during within
    before after above below along across around
    and or nor so then than too also very really quite still again yet
    if because while since until
    please pls kindly thanks thank hi hello hey ok okay yes
    now today soon ever maybe perhaps
    """
)

#: Words that ask. They are content words, but none of them counts alone (R2).
QUESTIONS = word_set("what why how when where which who whom whose whats whys hows wheres")
