"""What an outside resolver's answer must be before it counts, and before a person or an agent reads its texts.

Hot where such a resolver takes part in a hook: builtins only.
"""

from gstack.api import ACTIONS, Decision
from gstack.failures import Unsound

#: The longest text that is taken over, in characters.
LONGEST = 500
#: How many rules are taken over.
MOST_RULES = 100


def sound(said: object) -> Decision:
    """A copy of a resolver's decision whose texts are one printable line of at most ``LONGEST`` characters each.

    Raises Unsound for what is no decision, has no known action, or has something else where a text belongs.
    """
    if not isinstance(said, Decision):
        raise Unsound(f"gave {type(said).__name__}, not a Decision")
    return Decision(
        _action(said.action),
        _text(said.reason, "reason"),
        skill_name=_text(said.skill_name, "skill_name"),
        version=_optional(said.version, "version"),
        policy_id=_optional(said.policy_id, "policy_id"),
        policy_name=_optional(said.policy_name, "policy_name"),
        replacement=_optional(said.replacement, "replacement"),
        entry_kind=_text(said.entry_kind, "entry_kind"),
        governed=bool(said.governed),
        rule=_text(said.rule, "rule"),
        rules=[_rule(one) for one in said.rules[:MOST_RULES]],
        overridable=bool(said.overridable),
        resolver=_text(said.resolver, "resolver"),
    )


def _action(value: object) -> str:
    if isinstance(value, str) and value in ACTIONS:
        return value
    raise Unsound(f"gave a Decision whose action is {_shown(value)}; it is one of {', '.join(ACTIONS)}")


def _rule(value: object) -> "tuple[str, str, str]":
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise Unsound("gave a Decision with a rule that isn't (action, rule, reason)")
    action, rule, reason = value
    return _action(action), _text(rule, "rule"), _text(reason, "reason")


def _optional(value: object, field: str) -> "str | None":
    return None if value is None else _text(value, field)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise Unsound(f"gave a Decision whose {field} is {type(value).__name__}, not a text")
    if len(value) > LONGEST:
        value = value[: LONGEST - 1] + "…"
    if value.isprintable():
        return value
    line = " ".join(value.split())
    return "".join([char if char.isprintable() else "?" for char in line])


def _shown(value: object) -> str:
    """A wrong value in a few characters, by its type where it is no text."""
    return ascii(value[:40]) if isinstance(value, str) else type(value).__name__
