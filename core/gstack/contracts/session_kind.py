"""Who sits at the session: a person, nobody, or a parent process; and whether its turn is a final one (contracts C4).

Hot: asked by the stop hook, so builtins only.
"""

from gstack.contracts.status import ends_on_question, last_status, needs_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gstack.hook import HookContext

INTERACTIVE = "interactive"
HEADLESS = "headless"
SPAWNED = "spawned"
UNATTENDED = "unattended"

#: The kinds in which every turn is final.
ALWAYS_FINAL = (HEADLESS, UNATTENDED)


def session_kind(env: "Mapping[str, str]", host_says: "str | None" = None) -> str:
    """The kind of the session that a hook runs in.

    ``host_says`` is the host adapter's own answer (:meth:`gstack.protocols.HostAdapter.session_kind`). The first
    that is set wins; an empty variable counts as unset.
    """
    said = env.get("GSTACK_SESSION_KIND")
    if said in (SPAWNED, UNATTENDED):
        return said
    if env.get("OPENCLAW_SESSION"):
        return SPAWNED
    if env.get("GSTACK_HEADLESS"):
        return HEADLESS
    if env.get("CONDUCTOR_WORKSPACE_PATH") or env.get("CONDUCTOR_PORT"):
        return INTERACTIVE
    if host_says in (INTERACTIVE, HEADLESS):
        return host_says
    if env.get("CI") or env.get("GITHUB_ACTIONS"):
        return HEADLESS
    return INTERACTIVE


def final_turn(ctx: "HookContext", text: str) -> "bool | None":
    """Whether a turn that ended with ``text`` is a final one; None: it is, unless its last act is a question put with
    the host's own tool."""
    status = last_status(text)
    if status and status != "NEEDS_CONTEXT":
        return True
    said: str | None = ctx.host.session_kind(ctx.env)
    if said is None and ctx.event.interactive is not None:
        said = INTERACTIVE if ctx.event.interactive else HEADLESS
    if session_kind(ctx.env, said) in ALWAYS_FINAL:
        return True
    return False if status or ends_on_question(text) or needs_context(text) else None
