"""What the gate says to people and models (gate G3): one wording for the hook and for ``gstack gate --skill``.

Builtins only: the hook imports it when there is something to say.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gstack.api import Decision

UNCHECKED = "This call was not checked against your organisation's policy."
NOT_CONFIGURED = f"gstack: not configured on this machine — run `gstack login`. {UNCHECKED}"
NEVER_SYNCED = f"gstack: not synced on this machine — run `gstack sync`. {UNCHECKED}"

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def unusable(why: str) -> str:
    """What is said when the bundle on this machine can't be used."""
    return f"gstack: the policy bundle on this machine can't be used: {sentence(why)} {UNCHECKED}"


def quote(text: str) -> str:
    """``text`` as one value of a URL's query (``urllib.parse`` costs more than the hook may)."""
    data = text.encode("utf-8", "replace")
    return "".join([chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in data])


def exception_page(decision: "Decision", header: "Mapping[str, Any] | None") -> str:
    """Where to ask for an exception; empty where the organisation has no page."""
    if header is None:
        return ""
    page = header["requests_url"]
    if not page:
        base = header["base_url"]
        if not base.startswith(("https://", "http://")):
            return ""
        page = f"{base.rstrip('/')}/{quote(header['org'])}/requests/exception"
    if not page.startswith(("https://", "http://")):
        return str(page)
    policy = f"policy={quote(decision.policy_id)}&" if decision.policy_id else ""
    return f"{page}{'&' if '?' in page else '?'}{policy}skill={quote(decision.skill_name)}"


def sentence(text: str) -> str:
    """``text`` with something at its end that ends a sentence."""
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?…" else text + "."


def replacement(decision: "Decision") -> str:
    """``Use X instead.`` where the reason doesn't name it already; else empty."""
    instead = decision.replacement
    return f"Use {instead} instead." if instead and instead not in decision.reason else ""


def policy_of(decision: "Decision") -> str:
    """What people call the policy that decided; empty for a status or a default."""
    return decision.policy_name or decision.policy_id or ""


def deny_text(decision: "Decision", header: "Mapping[str, Any] | None") -> str:
    """The reason of a denied use, on one line."""
    policy = policy_of(decision)
    page = exception_page(decision, header)
    parts = (
        sentence(f"policy: {policy}") if policy else "",
        sentence(decision.reason),
        replacement(decision),
        f"Need it? Ask for an exception: {page}" if page else "Need it? Ask your organisation for an exception.",
    )
    return "gstack blocked this skill — " + " ".join([part for part in parts if part])


def warning(decision: "Decision") -> str:
    """What a warning says after the name."""
    reason = sentence(decision.reason) if decision.rule != "stale" else decision.reason
    if not reason:
        policy = policy_of(decision)
        reason = sentence(f"policy: {policy}") if policy else "Flagged by your organisation's policy."
    return " ".join([part for part in (reason, replacement(decision)) if part])


def warn_text(decision: "Decision") -> str:
    """The message for the person about a use that goes ahead with a warning."""
    return f"gstack: warning for {decision.skill_name} — {warning(decision)}"
