"""How a session's main thread falls into turns, and what the model loaded in each.

A transcript has no mark for every stop: older ones have none at all. A turn has ended where the model's last act is
text and then a prompt, a hook's feedback, the host's own mark or the end of the file follows. A turn that was broken
off, or whose last call has no result, ran no stop hook.
"""

from collections.abc import Callable, Iterator, Sequence

from gstack.api import Event
from gstack.replay.rows import FOLLOWED, NONE, OTHER

#: Events after which a turn is over, if the model's last act was text.
_BOUNDARIES = ("prompt", "continuation", "turn_end")
#: What the model, its tools or the person do within a turn.
_ACTS = ("text", "call", "result", "interrupted")


def stops(main: Sequence[Event]) -> Iterator[tuple[int, bool]]:
    """The place before which each turn of the main thread ended, and whether a stop hook had continued that turn."""
    last, active = "", False
    for place, event in enumerate(main):
        if event.type in _ACTS:
            last = event.type
        elif event.type in _BOUNDARIES:
            if last == "text":
                yield place, active
            last = ""
            if event.type == "prompt":
                active = False
            elif event.type == "continuation":
                active = True
    if last == "text":
        yield len(main), active


def answered(main: Sequence[Event], place: int) -> Iterator[Event]:
    """The loads by the model's own doing after the prompt at ``place``, up to the person's next prompt."""
    for event in main[place + 1 :]:
        if event.type == "prompt" and event.origin == "user":
            return
        if event.type == "load" and event.how != "typed":
            yield event


def what_followed(
    main: Sequence[Event], place: int, skill: str, resolve: Callable[[str], str | None]
) -> tuple[str, str]:
    """What the model did after a prompt that fits ``skill``: loaded it, another or none; and the first that it loaded.

    ``resolve`` gives the installed skill that a load's name means.
    """
    loaded = [resolve(event.name or "") or (event.name or "") for event in answered(main, place)]
    if skill in loaded:
        return FOLLOWED, skill
    return (OTHER, loaded[0]) if loaded else (NONE, "")
