"""What ``gstack doctor --live`` aims its payloads at: something installed here that a hook must act on. Cold."""

import os
import time
from collections.abc import Mapping
from typing import Any

from gstack.api import ALLOW, Answer, HookEvent
from gstack.config import Switch, read_config, switch
from gstack.contracts.judge import Bench, Checked, check_transcript, installed_skills
from gstack.errors import BundleError, ContractState, GstackError
from gstack.gate.names import entry_kind, last_segment
from gstack.hook import FEATURES, HookContext, project_config
from gstack.inventory import load_skills
from gstack.launcher import import_paths
from gstack.snapshot import load_plan
from gstack.trust import trusted_overlay

#: What is used where nothing better is found; no policy and no skill names it.
NEUTRAL = "gstack-doctor-probe"
#: The end of the made-up session: a final turn in every kind of session (contracts C4).
FINAL = "It is done.\n\nSTATUS: DONE"
#: How many names of a bundle are tried to find one that is banned.
MANY = 2000


class Scene:
    """Where hooks are tried: the host, a state folder (``root``), the environment and the working folder."""

    def __init__(self, host: Any, root: str, env: Mapping[str, str], cwd: str) -> None:
        self.host = host
        self.root = root
        self.env = dict(env)
        self.cwd = cwd
        self.config = read_config(root)
        self.project = project_config(root, cwd)
        self.plan = load_plan(root, import_paths(), env)

    def switch(self, feature: str) -> Switch:
        """A feature's switch, as its hook reads it here."""
        return switch(feature, self.env, self.config, self.project)

    def context(self, event: HookEvent) -> HookContext:
        """What a hook would be given for ``event``; there is no hurry."""
        now = time.monotonic()
        found = self.switch(FEATURES[event.kind][0])
        return HookContext(
            event, self.env, self.root, self.config, self.host, self.plan, found, self.project, now, now + 3600
        )


class Aims:
    """The payloads, and what each of them must lead to."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._found: dict[str, str] = {}
        self._why_not: dict[str, str] = {}
        self._checked: Checked | None = None
        self._given: dict[str, str] = {"prompt": "hello", "command": NEUTRAL, "skill": NEUTRAL, "subagent": NEUTRAL}
        self._transcript = os.path.join(scene.root, "transcript.jsonl")
        for look in (self._aim_prompt, self._aim_gate, self._aim_stop):
            look()

    def aim(self, use: str) -> str:
        """What the payload of ``use`` proves when the hook acts on it, in a few words; empty: nothing to act on."""
        return self._found.get(use, "")

    def why_not(self, use: str) -> str:
        """Why there is nothing that the hook could act on."""
        return self._why_not.get(use, "nothing here to act on")

    def payload(self, use: str, session_id: str, *, stop_active: bool = False) -> Mapping[str, Any] | None:
        """The host's payload of ``use`` in one session; None when the host has none, or nothing that it could name."""
        if use == "read" and "read" not in self._given:
            return None
        payloads = self.scene.host.sample_payloads(
            self.scene.cwd,
            session_id=session_id,
            transcript_path=self._transcript,
            final_text=FINAL,
            stop_active=stop_active,
            **self._given,
        )
        found: Mapping[str, Any] | None = payloads.get(use)
        return found

    def expected(self, use: str, event: HookEvent) -> Answer:
        """What the features say in this process of the payload's event."""
        if use == "stop":
            checked = self._checked
            return Answer(block_stop=checked.block_text(self._bench)) if checked else ALLOW
        from gstack.gate.hook import answer as gate
        from gstack.routing.hook import answer as routing

        return (routing if use == "prompt" else gate)(self.scene.context(event))

    # ---------------------------------------------------------------------------------------------- routing

    def _aim_prompt(self) -> None:
        """A trigger that routes to its skill when it is the whole prompt."""
        from gstack.routing.explain import explain
        from gstack.routing.hook import routed_set

        context = self._context("prompt")
        if context is None:
            return
        routed = routed_set(context)
        overlay, _ = trusted_overlay(self.scene.root, self.scene.cwd)
        installed = load_skills(
            self.scene.host, self.scene.env, self.scene.cwd, state_root=self.scene.root, trusted_overlay=overlay
        )
        skills = [skill for skill in installed.skills if skill.name in routed and skill.triggers]
        for skill in skills:
            for trigger in skill.triggers:
                if explain(context, trigger).route == skill.name:
                    self._given["prompt"] = trigger
                    self._found["prompt"] = f"a prompt that is a trigger of /{skill.name} gets its hint"
                    return
        where = "no skill of the routed set is installed with triggers" if not skills else "no trigger routes alone"
        self._why_not["prompt"] = f"{where} (gstack config get routed_skills)"

    # ------------------------------------------------------------------------------------------------- gate

    def _aim_gate(self) -> None:
        """Names that the policy bans, for each way in which one can be used; what is installed comes first."""
        context = self._context("skill", "command", "subagent")
        if context is None:
            return
        try:
            entries = self._entries()
        except BundleError as error:
            self._why_not |= dict.fromkeys(("command", "skill", "subagent", "read"), f"no policy: {error.message}")
            entries = {}
        installed = context.skills().names
        for use in ("command", "skill", "subagent"):
            fitting = [name for name, kind in entries.items() if (kind == "subagent") == (use == "subagent")]
            # hosts invoke by the bare name
            spoken = [form for name in fitting for form in (last_segment(name), name)]
            names = spoken if use == "subagent" else [*installed, *spoken]
            found = next((name for name in names if _banned(context, name, use)), None)
            if found:
                self._given[use] = found
                self._found[use] = f"{found} is denied" + (" when it is typed" if use == "command" else "")
            self._why_not.setdefault(use, f"the policy bans no {use}")
        files = [path for name, path in installed.items() if _banned(context, name, "skill")]
        if files:
            self._found["read"] = f"reading {files[0]} is denied"
        self._why_not.setdefault("read", "no installed skill is banned")
        for path in [*files, *installed.values()][:1]:
            self._given["read"] = path

    def _entries(self) -> dict[str, str]:
        """Names that the bundle in force has entries for, with their kind. Raises BundleError."""
        from gstack.gate.bundle import verify_installed

        index = verify_installed(self.scene.root).payload.get("manifest_index") or {}
        return {name: entry_kind(index[name].get("kind")) for name in list(index)[:MANY]}

    # -------------------------------------------------------------------------------------------- contracts

    def _aim_stop(self) -> None:
        """A skill whose contract isn't met by the made-up session."""
        scene, context = self.scene, self._context("stop")
        if context is None:
            return
        self._bench = Bench(scene.root, scene.env)
        book = installed_skills(self._bench, scene.cwd)
        declaring = list(context.skills().contracts)
        self._write(declaring[0] if declaring else NEUTRAL)
        for name in declaring:
            self._write(name)
            try:
                checked = check_transcript(self._transcript, book.declared(name), self._bench, cwd=scene.cwd)
            except ContractState:
                raise
            except GstackError:
                continue
            if checked.outcome.missing and not checked.outcome.unclear:
                self._checked = checked
                self._found["stop"] = f"a stop without the outputs of /{name} is held"
                return
        self._why_not["stop"] = "no installed skill declares a contract" if not declaring else "no contract to miss"

    def _write(self, skill: str) -> None:
        data = self.scene.host.sample_transcript(self.scene.cwd, session_id=NEUTRAL, skill=skill, final_text=FINAL)
        with open(self._transcript, "wb") as file:
            file.write(data)

    def _context(self, *uses: str) -> HookContext | None:
        """What the hook would be given for the first of ``uses`` that the host has a payload for; None: for none."""
        for use in uses:
            payload = self.payload(use, NEUTRAL)
            event = self.scene.host.decode(payload, self.scene.env) if payload else None
            if event is not None:
                return self.scene.context(event)
        return None


def _banned(context: HookContext, name: str, kind: str) -> bool:
    """Whether the gate blocks this use of ``name``."""
    from gstack.gate.hook import judge, known

    invocation = known(context, name, kind)
    decision = judge(context, invocation).decision if invocation else None
    return decision is not None and decision.action == "block"
