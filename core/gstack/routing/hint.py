"""The routing hint: the one line that the model sees (spec, routing R4).

Hot: imported by the hook when a prompt routes, so builtins only. Plain statements of fact; hosts escape angle
brackets or treat a line break as the end, so neither occurs.
"""

from gstack.api import Skill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.plan import Plan

#: Longest hint, in characters.
HINT_LIMIT = 600
#: The values of ``GSTACK_SKILL_ROUTE_HINT``; anything else means the first.
VARIANTS = ("name", "step", "contract")

_BRACKETS = {ord("<"): "[", ord(">"): "]"}


def compose(skill: str, path: str, host: "Any", event_name: str, *, detail: "Callable[[], str] | None" = None) -> str:
    """The hint for ``skill``, whose ``SKILL.md`` is ``path``, in the words of the host adapter ``host``.

    ``event_name`` is the host's own name of the prompt-submit event; ``detail`` gives the sentence that the variant
    adds (``""``: none), which is cut where the hint would get longer than :data:`HINT_LIMIT`.
    """
    start = f"gstack skill routing ({event_name} hook; off switch: gstack config set skill_routing off): "
    end = " In one sentence, tell the user that gstack routed this request."
    middle = f"this request fits /{skill}. {host.load_phrase(Skill(skill, path))} before you start."
    text = one_line(start + middle)
    added = one_line(detail()) if detail else ""
    room = HINT_LIMIT - len(text) - len(end) - 1
    if added and room >= len("…") + 20:
        text += " " + _cut(added, room)
    return _cut(text, HINT_LIMIT - len(end)) + end


def step_detail(first_step: str) -> str:
    """The sentence of the variant ``step``."""
    return f"Its first step: {first_step}" if first_step.strip() else ""


def contract_detail(contract: "Any", plan: "Plan", path: str) -> str:
    """The sentence of the variant ``contract``: what must exist before the skill is done.

    Each item's own ``summary``, else its kind's. Empty when there is no contract or it isn't valid (an invalid one is
    never half applied).
    """
    if not contract:
        return ""
    from gstack.contracts.schema import parse_contract
    from gstack.errors import GstackError
    from gstack.failures import PluginFailed

    kinds = {kind.name: kind for _, kind in plan.objects("gstack.contract_kinds")}
    try:
        items = parse_contract(contract, kinds, source=path).items
        summaries = [item.summary or str(plan.call(kinds[item.kind], kinds[item.kind].summary, item)) for item in items]
    except (GstackError, PluginFailed):
        return ""
    return f"Before it is done it must have produced: {', '.join(summaries)}"


def detail_of(variant: str, *, first_step: str, contract: "Any", plan: "Plan", path: str) -> "Callable[[], str] | None":
    """What ``variant`` adds to the hint, worked out only when a hint is made."""
    if variant == "step":
        return lambda: step_detail(first_step)
    if variant == "contract":
        return lambda: contract_detail(contract, plan, path)
    return None


def one_line(text: str) -> str:
    """``text`` on one line, without control characters and ASCII angle brackets."""
    text = " ".join(text.replace("->", "→").replace("=>", "→").translate(_BRACKETS).split())
    return text if text.isprintable() else "".join([char for char in text if char.isprintable()])


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text if text.endswith((".", "!", "?", "…")) else text + "." if len(text) < limit else text
    return text[: limit - 1].rstrip() + "…"
