"""Write a synthetic Claude Code transcript, for measuring how long the stop hook reads it.

The records have the layout of Claude Code 2.1.332: keys and their order, one block a message, results that stand twice,
and the records in between that no reader needs (each request to the model is logged with its parameters). About
4 KB a record; three quarters of the bytes are what tools printed, as code with short lines, quotes and some letters
that aren't ASCII. Nothing is random but for the seed.

    python benchmarks/make_transcript.py --mib 32 --load far big.jsonl
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SKILL = "investigate"
SESSION = "8901bdc4-3070-4b80-9cb4-e27d3b9556b7"

#: Where the load stands: near the end (200 KB from it), in the middle, in the first turn, nowhere.
PLACES = ("near", "middle", "far", "never")

_WORDS = (
    "return", "def", "class", "self", "import", "value", "result", "data", "path", "error", "if", "else", "for",
    "in", "not", "None", "True", "assert", "test", "check", "config", "handler", "request", "response", "token",
    "the", "a", "of", "to", "and", "is", "this", "when", "skill", "Skill", "command", "name", "type", "user",
    "{", "}", "(x)", "[0]", "=", "==", "->", "+", "# why", "//", '"text"', '"assistant"', "'key'", '{"id": 1}', "\\d+",
)  # fmt: skip
_TOOLS = ("Bash", "Bash", "Bash", "Read", "Read", "Edit", "Grep", "Write")
_BETAS = [
    "claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27",
    "per-turn-control-2026-07-01", "mid-conversation-tool-changes-2026-07-01", "thinking-token-count-2026-05-13",
    "advanced-tool-use-2025-11-20", "effort-2025-11-24", "thinking-display-updates-2026-08-18",
]  # fmt: skip


class Session:
    """Makes the records of one session, in order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.parent: str | None = None

    def text(self, size: int, *, colour: bool = False) -> str:
        """About ``size`` characters of something like code; ``colour``: with terminal escapes."""
        parts: list[str] = []
        length = 0
        other = self.random.random() < 0.25  # a quarter of the texts aren't ASCII
        while length < size:
            line = " " * (4 * self.random.randint(0, 3)) + " ".join(
                self.random.choices(_WORDS, k=self.random.randint(2, 9))
            )
            if colour and self.random.random() < 0.2:
                line = f"\x1b[32m{line}\x1b[0m"
            if other and self.random.random() < 0.05:
                line = f"✓ {line} — {line[:3]}"
            parts.append(line)
            length += len(line) + 1
        return "\n".join(parts)[:size]

    def size(self, mean: float) -> int:
        """A length with the long tail that real output has."""
        return min(30_000, int(self.random.lognormvariate(0.0, 0.9) * mean / 1.5) + 20)

    def ident(self) -> str:
        """The next uuid."""
        self.count += 1
        return f"00000000-0000-4000-8000-{self.count:012x}"

    def digest(self) -> str:
        """Something like a SHA-256."""
        return f"{self.random.getrandbits(256):064x}"

    def time(self) -> str:
        """The time of the record that was made last."""
        second = self.count // 3
        return (
            f"2026-11-{1 + second // 86400 % 28:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:"
            f"{second % 60:02d}.{self.count % 3 * 300:03d}Z"
        )

    def foot(self) -> dict[str, Any]:
        """What all conversation records end with."""
        return {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": "/home/u/work",
            "sessionId": SESSION,
            "version": "2.1.332",
            "gitBranch": "main",
        }

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        """A user record."""
        self.parent, before = self.ident(), self.parent
        return {
            "parentUuid": before,
            "isSidechain": False,
            "promptId": SESSION,
            "type": "user",
            "message": {"role": "user", "content": content},
            "uuid": self.parent,
            "timestamp": self.time(),
            **more,
            **self.foot(),
        }

    def assistant(self, block: dict[str, Any], stop: str = "tool_use") -> dict[str, Any]:
        """A record of the model's message."""
        self.parent, before = self.ident(), self.parent
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 312,
            "cache_read_input_tokens": 48_211,
            "output_tokens": 212,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 312},
        }
        return {
            "parentUuid": before,
            "isSidechain": False,
            "message": {
                "id": f"msg_{self.count:024x}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": usage,
            },
            "requestId": f"req_{self.count:024x}",
            "apiBlockIndex": 0,
            "type": "assistant",
            "uuid": self.parent,
            "timestamp": self.time(),
            "effort": "medium",
            **self.foot(),
        }

    def call(self, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A tool call's id and its record."""
        ident = f"toolu_{self.count:024x}"
        return ident, self.assistant({"type": "tool_use", "id": ident, "name": name, "input": given})

    def result(self, ident: str, text: str, value: Any, **more: Any) -> dict[str, Any]:
        """The record of a call's result."""
        block = {"tool_use_id": ident, "type": "tool_result", "content": text, **more}
        return self.user([block], toolUseResult=value, sourceToolAssistantUUID=self.parent)

    def request(self) -> Iterator[dict[str, Any]]:
        """What is logged of a request to the model."""
        yield {
            "type": "api-request", "sessionId": SESSION, "id": self.ident(), "timestamp": self.time(),
            "version": "2.1.332", "querySource": "sdk", "shapeHash": self.digest(),
            "params": {
                "model": "claude-opus-5-5", "betas": _BETAS, "max_tokens": 128000,
                "thinking": {"type": "adaptive", "display": "updates"},
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                "output_config": {"effort": "medium"},
            },
            "thread": {"type": "none"}, "echoWireToolInputs": False, "keep": 40, "tail": [self.digest(), self.digest()],
            "cacheControl": [{"path": ["system", 0], "value": {"type": "ephemeral"}}] * 3,
            "requestDigest": self.digest(),
        }  # fmt: skip
        yield {"type": "tools-used", "tools": ["Bash", "Read", "Skill"], "sessionId": SESSION}
        yield {"type": "last-prompt", "lastPrompt": "go on", "leafUuid": self.parent, "sessionId": SESSION}

    def step(self) -> Iterator[dict[str, Any]]:
        """One tool call and what stands round it."""
        yield from self.request()
        name = self.random.choice(_TOOLS)
        path = f"/home/u/work/src/module_{self.random.randint(1, 40)}.py"
        output = self.text(self.size(11_000), colour=name == "Bash" and self.random.random() < 0.25)
        if self.random.random() < 0.5:
            yield self.assistant({"type": "text", "text": self.text(self.size(350))})
        value: dict[str, Any]
        if name == "Bash":
            ident, call = self.call("Bash", {"command": f"pytest {path} -q", "description": "Run the tests"})
            yield call
            value = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
            yield self.result(ident, output, value, is_error=False)
        elif name == "Read":
            ident, call = self.call("Read", {"file_path": path})
            yield call
            shown = {"filePath": path, "content": output, "numLines": 80, "startLine": 1, "totalLines": 80}
            yield self.result(ident, output, {"type": "text", "file": shown})
        elif name == "Edit":
            old, new = self.text(self.size(250)), self.text(self.size(300))
            ident, call = self.call("Edit", {"file_path": path, "old_string": old, "new_string": new})
            yield call
            value = {"filePath": path, "oldString": old, "newString": new, "originalFile": output, "replaceAll": False}
            yield self.result(ident, f"The file {path} has been updated.", value)
        elif name == "Grep":
            ident, call = self.call("Grep", {"pattern": "def ", "path": "/home/u/work"})
            yield call
            yield self.result(ident, output, {"mode": "content", "filenames": [], "content": output, "numLines": 80})
        else:
            ident, call = self.call("Write", {"file_path": path, "content": output})
            yield call
            value = {"type": "create", "filePath": path, "content": output, "structuredPatch": []}
            yield self.result(ident, f"File created successfully at: {path}", value)

    def turn(self, *, load: bool = False) -> Iterator[dict[str, Any]]:
        """One prompt and what follows it; ``load``: the model loads the skill first."""
        yield self.user(self.text(200), promptSource="typed", origin={"kind": "human"}, turnOrigin="human")
        if load:
            yield from self.load()
        for _ in range(self.random.randint(3, 12)):
            yield from self.step()
        yield from self.request()
        yield self.assistant({"type": "text", "text": self.text(self.size(900))}, "end_turn")
        yield {
            "parentUuid": self.parent, "isSidechain": False, "type": "system", "subtype": "turn_duration",
            "durationMs": 5000, "messageCount": 12, "uuid": self.ident(), "timestamp": self.time(), "isMeta": False,
            **self.foot(),
        }  # fmt: skip

    def end(self, text: str) -> Iterator[dict[str, Any]]:
        """The skill's work is done: the tests pass, and the model says ``text``."""
        ident, call = self.call("Bash", {"command": "pytest -q", "description": "Run the tests"})
        yield call
        value = {"stdout": "12 passed", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        yield self.result(ident, "12 passed", value, is_error=False)
        yield self.assistant({"type": "text", "text": text}, "end_turn")

    def load(self) -> Iterator[dict[str, Any]]:
        """The Skill tool loads the skill."""
        ident, call = self.call("Skill", {"skill": SKILL, "args": "it fails"})
        yield call
        yield self.result(ident, f"Launching skill: {SKILL}", {"success": True, "commandName": SKILL})
        body = f"Base directory for this skill: /home/u/.claude/skills/{SKILL}\n\n{self.text(6000)}"
        yield self.user([{"type": "text", "text": body}], isMeta=True, turnCompanion=True, sourceToolUseID=ident)


#: The final text of a run that did what its skill asks for.
REPORT = (
    "DEBUG REPORT\nSymptom: the login fails\nRoot cause: the token is read before it is written\n"
    "Fix: write it first\nEvidence: pytest passes\n\nSTATUS: DONE"
)


def write(path: Path, size: int, load: str, *, seed: int = 1, spaced: bool = False, last: str = "") -> int:
    """Write at most ``size`` bytes to ``path`` with the load where ``load`` (of PLACES) says; the number of records.

    ``spaced``: with a space after colons and commas, as Python's ``json`` writes by itself. ``last``: behind that, the
    tests are run once more and this is the last text.
    """
    session = Session(seed)
    separators = None if spaced else (",", ":")
    loaded = load == "never"
    before = {"near": size - 200_000, "middle": size // 2}.get(load, 0)
    records = written = 0
    full = False
    with path.open("wb") as file:
        while not full:
            loads = not loaded and written >= before
            loaded = loaded or loads
            for record in session.turn(load=loads):
                if not loaded and written >= before:
                    break  # the turn breaks off, the next one loads
                line = json.dumps(record, ensure_ascii=False, separators=separators).encode() + b"\n"
                full = written + len(line) > size
                if full:
                    break
                file.write(line)
                written += len(line)
                records += 1
        for record in session.end(last) if last else ():
            file.write(json.dumps(record, ensure_ascii=False, separators=separators).encode() + b"\n")
            records += 1
    return records


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--mib", type=float, default=32)
    parser.add_argument("--load", choices=PLACES, default="near")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spaced", action="store_true", help="a space after colons and commas")
    given = parser.parse_args()
    count = write(given.path, int(given.mib * (1 << 20)), given.load, seed=given.seed, spaced=given.spaced)
    print(f"{given.path}: {given.path.stat().st_size} bytes, {count} records")


if __name__ == "__main__":
    main()
