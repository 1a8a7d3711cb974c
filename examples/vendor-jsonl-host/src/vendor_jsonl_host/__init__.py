"""The host adapter ``vendor.jsonl``: a coding agent that speaks JSON lines of its own shape.

The agent runs a hook with one JSON object on standard input::

    {"agent": "jsonl-agent", "on": "ask", "run": "r1", "dir": "/home/u/work", "log": "…/r1.jsonl", "text": "fix it"}

and reads one JSON object as the answer: ``context`` for the model, ``refuse`` a tool call, ``again`` to go on
instead of finishing, ``tell`` the person something.

The hook imports this module on each event of the agent, so the rest is imported in the method that needs it.
"""

from gstack.api import PROMPT_SUBMITTED, TOOL_PROPOSED, TURN_ENDING, HookEvent, hookimpl
from gstack.lowlevel import dump_json

#: What the agent calls itself.
AGENT = "jsonl-agent"


class VendorJsonl:
    """One object a host; gstack asks the one that the registered command names."""

    id = "vendor.jsonl"
    title = "JSONL agent"
    docs = "https://example.com/jsonl-agent/hooks"
    events = {"ask": PROMPT_SUBMITTED, "use": TOOL_PROPOSED, "finish": TURN_ENDING}
    capabilities = {
        "inject": "flat",
        "inject_limit": 4000,
        "deny": "flat",
        "block_stop": "flat",
        "notice": "user",
        "escapes_markup": False,
        "crash_is": "open",
        "evidence": "documentation",
    }
    skill_variables = ("HOME", "USERPROFILE")

    def claims(self, env, payload):
        """Whether a payload is this agent's; everything else is somebody else's."""
        return "mine" if payload.get("agent") == AGENT else "foreign"

    def decode(self, payload, env):
        """The payload in gstack's words; None for an event without use, or without what it needs."""
        name = payload.get("on")
        kind = self.events.get(name) if isinstance(name, str) else None
        if kind is None:
            return None
        event = HookEvent(
            self.id,
            kind,
            name,
            session_id=_text(payload.get("run")),
            cwd=_text(payload.get("dir")),
            transcript_path=_text(payload.get("log")),
            raw=payload,
        )
        if kind == PROMPT_SUBMITTED:
            event.prompt = _text(payload.get("text"))
            event.origin = "user" if payload.get("by", "person") == "person" else "host"
            return event if event.prompt else None
        if kind == TOOL_PROPOSED:
            from vendor_jsonl_host.transcript import tool_call

            event.tool = tool_call(payload)
            return event if event.tool else None
        again = payload.get("again")
        event.stop_active = again if isinstance(again, bool) else None
        event.last_assistant_text = _text(payload.get("said"))
        return event

    def render(self, answer, event):
        """The answer as the agent reads it; nothing where there is nothing to say."""
        out = {}
        if answer.inject and event.kind == PROMPT_SUBMITTED:
            out["context"] = answer.inject
        if answer.deny and event.kind == TOOL_PROPOSED:
            out["refuse"] = answer.deny
        if answer.block_stop and event.kind == TURN_ENDING:
            out["again"] = answer.block_stop
        if answer.notice:
            out["tell"] = answer.notice
        return dump_json(out).encode() + b"\n" if out else b""

    def session_kind(self, env):
        """The agent's variables don't say who sits there."""
        return None

    # --------------------------------------------------------------------------------------- transcripts

    def read_transcript(self, path, *, max_bytes):
        """The whole transcript as events."""
        from vendor_jsonl_host.transcript import read_transcript

        return read_transcript(path, max_bytes=max_bytes)

    def read_run(self, path, *, skills, max_bytes):
        """The events from the last load of one of these skills on."""
        from vendor_jsonl_host.transcript import read_run

        return read_run(path, skills=skills, max_bytes=max_bytes)

    def transcripts(self, env):
        """The transcripts on this machine, newest first."""
        from vendor_jsonl_host.places import transcripts

        return transcripts(env)

    # -------------------------------------------------------------------------------------------- skills

    def skill_places(self, env, cwd):
        """The folders that skills are read from, and the files that this depends on."""
        from vendor_jsonl_host.places import skill_roots

        return skill_roots(env, cwd), []

    def skills_in(self, root):
        """The skills of one folder: (name, path of SKILL.md), in path order."""
        from vendor_jsonl_host.places import skills_in

        return skills_in(root)

    def taken_names(self):
        """The agent has no commands of its own."""
        return ()

    def load_phrase(self, skill):
        """How the model runs a skill."""
        return f"Use the skill tool with {skill.name}"

    # ------------------------------------------------------------------------------------------ settings

    def registrations(self, features):
        """The hooks that these features need."""
        from vendor_jsonl_host.settings import registrations

        return registrations(features)

    def settings_path(self, env, project):
        """The agent's file of hooks."""
        from vendor_jsonl_host.places import folder

        return f"{project or folder(env)}/{'.' + AGENT + '/' if project else ''}hooks.json"

    def plan_settings(self, wanted, launcher, env, project):
        """What that file must become, so that exactly these hooks are in it."""
        from vendor_jsonl_host.settings import plan_settings

        return plan_settings(self.settings_path(env, project), wanted, launcher)

    def apply_settings(self, change):
        """Write a planned change."""
        from gstack import jsonfile

        jsonfile.apply(change)

    def diagnose(self, wanted, launcher, env, project):
        """What is right and wrong with the agent's side."""
        from vendor_jsonl_host.settings import diagnose

        return diagnose(self.settings_path(env, project), wanted, launcher)


def _text(value):
    return value if isinstance(value, str) and value else None


@hookimpl
def gstack_host_adapters():
    """What the entry point's module is asked for."""
    return [VendorJsonl()]
