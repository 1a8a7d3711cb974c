"""Claude Code: payloads, transcript, settings and skills, one module each.

Hot: the hook imports this module and ``payloads``; everything else is imported in the method that needs it.
Facts: measured on Claude Code 2.1.332.
"""

from gstack.api import (
    COMMAND_TYPED,
    PROMPT_SUBMITTED,
    SUBAGENT_ENDING,
    TOOL_PROPOSED,
    TURN_ENDING,
    hookimpl,
)
from gstack_hosts.claude_code import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from gstack.api import Answer, Event, Finding, HookEvent, Registration, Skill, SkillRoot
    from gstack.protocols import HostAdapter, RegisteredCommand, SettingsChange


class ClaudeCode:
    """The adapter object; see :class:`gstack.protocols.HostAdapter` for what each member is."""

    id = "claude-code"
    title = "Claude Code"
    docs = "https://code.claude.com/docs/en/hooks"
    skill_variables = ("CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "HOME", "USERPROFILE")
    skill_markers = (".claude-plugin/plugin.json",)
    events = {  # noqa: RUF012 - read only
        "UserPromptSubmit": PROMPT_SUBMITTED,
        "UserPromptExpansion": COMMAND_TYPED,
        "PreToolUse": TOOL_PROPOSED,
        "Stop": TURN_ENDING,
        "SubagentStop": SUBAGENT_ENDING,
    }
    capabilities = {  # noqa: RUF012 - read only
        "inject": "nested",
        "inject_limit": 10_000,
        "deny": "nested",
        "block_stop": "flat",
        "notice": "user",
        "escapes_markup": False,
        "crash_is": "open",
        "native_cap": 8,
        "active_flag": "stop_hook_active",
        "evidence": "live, Claude Code 2.1.332, 2026-11-30",
    }

    def claims(self, env: "Mapping[str, str]", payload: "Mapping[str, Any]") -> str:
        """``mine``, ``unsure`` or ``foreign``."""
        return payloads.claims(env, payload)

    def decode(self, payload: "Mapping[str, Any]", env: "Mapping[str, str]") -> "HookEvent | None":
        """The payload in neutral words."""
        return payloads.decode(payload, env)

    def render(self, answer: "Answer", event: "HookEvent") -> bytes:
        """Standard output for ``answer``."""
        return payloads.render(answer, event)

    def session_kind(self, env: "Mapping[str, str]") -> "str | None":
        """``interactive`` or ``headless`` where Claude Code says so."""
        return payloads.session_kind(env)

    def read_transcript(self, path: str, *, max_bytes: int) -> "list[Event]":
        """The whole transcript."""
        from gstack_hosts.claude_code.transcript import read_transcript

        return read_transcript(path, max_bytes=max_bytes)

    def read_run(self, path: str, *, skills: "Collection[str]", max_bytes: int) -> "list[Event]":
        """The part of the transcript from the last load of one of ``skills`` on."""
        from gstack_hosts.claude_code.transcript import read_run

        return read_run(path, skills=skills, max_bytes=max_bytes)

    def last_load(self, path: str, *, skills: "Collection[str]", max_bytes: int) -> "Event | None":
        """The load that ``read_run`` begins with (:class:`gstack.protocols.FindsLoads`)."""
        from gstack_hosts.claude_code.transcript import last_load

        return last_load(path, skills=skills, max_bytes=max_bytes)

    def read_end(self, path: str, *, skills: "Collection[str]", max_bytes: int) -> "list[Event] | None":
        """The load and the last part of a long run (:class:`gstack.protocols.ReadsEnds`)."""
        from gstack_hosts.claude_code.run_end import read_end

        return read_end(path, skills=skills, max_bytes=max_bytes)

    def rest_lacks(self, path: str, **asked: "Any") -> "Event | bool":
        """Whether what ``read_end`` left out lacks what is asked for (:class:`gstack.protocols.ReadsEnds`)."""
        from gstack_hosts.claude_code.run_end import rest_lacks

        return rest_lacks(path, **asked)

    def transcripts(self, env: "Mapping[str, str]") -> "Iterable[str]":
        """The transcripts on this machine, newest first."""
        from gstack_hosts.claude_code.transcript import transcripts

        return transcripts(env)

    def about(self, path: str) -> "dict[str, Any]":
        """What holds for the whole session of a transcript (:class:`gstack.protocols.KnowsSessions`)."""
        from gstack_hosts.claude_code.about import about

        return about(path)

    def subagent_transcripts(self, path: str) -> "list[str]":
        """The files of a session's subagents."""
        from gstack_hosts.claude_code.about import subagent_transcripts

        return subagent_transcripts(path)

    def skill_places(self, env: "Mapping[str, str]", cwd: "str | None") -> "tuple[list[SkillRoot], list[str]]":
        """The folders that skills are read from."""
        from gstack_hosts.claude_code.skills import skill_places

        return skill_places(env, cwd)

    def skills_in(self, root: "SkillRoot") -> "list[tuple[str, str]]":
        """The skills of one root."""
        from gstack_hosts.claude_code.skills import skills_in

        return skills_in(root)

    def taken_names(self) -> "Collection[str]":
        """Names that Claude Code's own commands have taken."""
        from gstack_hosts.claude_code.skills import taken_names

        return taken_names()

    def load_phrase(self, skill: "Skill") -> str:
        """How the model runs the skill."""
        from gstack_hosts.claude_code.skills import load_phrase

        return load_phrase(skill)

    def registrations(self, features: "Collection[str]") -> "list[Registration]":
        """The entries that these features need."""
        from gstack_hosts.claude_code.settings import registrations

        return registrations(features)

    def settings_path(self, env: "Mapping[str, str]", project: "str | None") -> str:
        """The settings file."""
        from gstack_hosts.claude_code.settings import settings_path

        return settings_path(env, project)

    def plan_settings(
        self,
        wanted: "Sequence[Registration]",
        launcher: str,
        env: "Mapping[str, str]",
        project: "str | None",
    ) -> "SettingsChange":
        """What the settings file must become."""
        from gstack_hosts.claude_code.settings import plan_settings

        return plan_settings(wanted, launcher, env, project)

    def apply_settings(self, change: "SettingsChange") -> None:
        """Write a planned change."""
        from gstack_hosts.claude_code.settings import apply_settings

        apply_settings(change)  # type: ignore[arg-type,unused-ignore]

    def diagnose(
        self,
        wanted: "Sequence[Registration]",
        launcher: str,
        env: "Mapping[str, str]",
        project: "str | None",
    ) -> "list[Finding]":
        """What is right and wrong with Claude Code's side."""
        from gstack_hosts.claude_code.settings import diagnose

        return diagnose(wanted, launcher, env, project)

    def hooks_off(self, env: "Mapping[str, str]", project: "str | None") -> "list[Finding]":
        """What in Claude Code's settings keeps every hook from running (:class:`gstack.protocols.SeesHooksOff`)."""
        from gstack_hosts.claude_code.settings import hooks_off

        return hooks_off(env, project)

    # what `gstack doctor --live` asks for (gstack.protocols.TriedHost)

    @property
    def gaps(self) -> str:
        """What is known to keep hooks from running."""
        from gstack_hosts.claude_code.samples import GAPS

        return GAPS

    def registered_commands(self, env: "Mapping[str, str]", cwd: str) -> "list[RegisteredCommand]":
        """The commands of gstack's that a session would run."""
        from gstack_hosts.claude_code.samples import registered_commands

        return registered_commands(env, cwd)

    def sample_env(self, cwd: str) -> "dict[str, str]":
        """The variables that a session gives to its hooks."""
        from gstack_hosts.claude_code.samples import sample_env

        return sample_env(cwd)

    def sample_payloads(self, cwd: str, **given: "Any") -> "dict[str, dict[str, Any]]":
        """One payload of each use."""
        from gstack_hosts.claude_code.samples import sample_payloads

        return sample_payloads(cwd, **given)

    def sample_transcript(self, cwd: str, *, session_id: str, skill: str, final_text: str) -> bytes:
        """A short transcript."""
        from gstack_hosts.claude_code.samples import sample_transcript

        return sample_transcript(cwd, session_id=session_id, skill=skill, final_text=final_text)


@hookimpl
def gstack_host_adapters() -> "list[HostAdapter]":
    """The Claude Code adapter."""
    return [ClaudeCode()]
