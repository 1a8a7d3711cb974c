"""Write a synthetic Claude Code transcript, for measuring how long the stop hook reads it.

The records have the layout of Claude Code 2.1.332 (keys and their order as in real sessions): prompts, messages of the
model with one block each, results that stand twice, and the small records in between that no reader needs. About
4.2 KB a record, of which four fifths are tool output. Nothing is random but for the seed.

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

#: Where the load stands: near the end (the last 150 KB), in the middle, in the first turn, nowhere.
PLACES = ("near", "middle", "far", "never")

_WORDS = (
    "return", "def", "class", "self", "import", "value", "result", "data", "path", "error", "if", "else", "for", "in",
    "not", "None", "True", "assert", "test", "check", "config", "handler", "request", "response", "token", "session",
    "the", "a", "of", "to", "and", "is", "this", "when", "skill", "Skill", "command", "name", "type", "user", "assistant",
    "{", "}", "(", ")", "[", "]", "=", "==", "->", "+", "#", "//", '"text"', "'key'", "\\n",
)  # fmt: skip
_TOOLS = ("Bash", "Bash", "Bash", "Read", "Read", "Edit", "Grep", "Write")


class Session:
    """Makes the records of one session, in order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.parent: str | None = None

    def text(self, size: int, *, colour: bool = False) -> str:
        """About ``size`` characters of something like code or prose; ``colour``: with terminal escapes."""
        parts: list[str] = []
        length = 0
        other = self.random.random() < 0.25  # a quarter of the texts aren't ASCII
        while length < size:
            line = " ".join(self.random.choices(_WORDS, k=self.random.randint(4, 14)))
            if colour and self.random.random() < 0.2:
                line = f"\x1b[32m{line}\x1b[0m"
            if other and self.random.random() < 0.05:
                line = f"✓ {line} — {line[:3]}"
            parts.append(line)
            length += len(line) + 1
        return "\n".join(parts)[:size]

    def size(self, mean: float) -> int:
        """A length with the long tail that real output has."""
        return min(60_000, int(self.random.lognormvariate(0.0, 0.9) * mean / 1.5) + 20)

    def ident(self) -> str:
        self.count += 1
        return f"00000000-0000-4000-8000-{self.count:012x}"

    def time(self) -> str:
        second = self.count // 3
        return (
            f"2026-11-{1 + second // 86400 % 28:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:"
            f"{second % 60:02d}.{self.count % 3 * 300:03d}Z"
        )

    def head(self) -> dict[str, Any]:
        return {"parentUuid": self.parent, "isSidechain": False}

    def foot(self) -> dict[str, Any]:
        return {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": "/home/u/work",
            "sessionId": SESSION,
            "version": "2.1.332",
            "gitBranch": "main",
        }

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
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
        ident = f"toolu_{self.count:024x}"
        return ident, self.assistant({"type": "tool_use", "id": ident, "name": name, "input": given})

    def result(self, ident: str, text: str, value: Any, **more: Any) -> dict[str, Any]:
        block = {"tool_use_id": ident, "type": "tool_result", "content": text, **more}
        return self.user([block], toolUseResult=value, sourceToolAssistantUUID=self.parent)

    def step(self) -> Iterator[dict[str, Any]]:
        """One tool call and what stands round it."""
        name = self.random.choice(_TOOLS)
        path = f"/home/u/work/src/module_{self.random.randint(1, 40)}.py"
        output = self.text(self.size(7500), colour=name == "Bash" and self.random.random() < 0.25)
        if self.random.random() < 0.5:
            yield self.assistant({"type": "text", "text": self.text(self.size(350))})
        if name == "Bash":
            ident, call = self.call("Bash", {"command": f"pytest {path} -q", "description": "Run the tests"})
            yield call
            value: Any = {
                "stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False,
            }  # fmt: skip
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
            value = {
                "filePath": path,
                "oldString": old,
                "newString": new,
                "originalFile": output * 2,
                "replaceAll": False,
            }
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
        yield {"type": "last-prompt", "lastPrompt": "go on", "leafUuid": self.parent, "sessionId": SESSION}
        yield {
            "type": "api-request",
            "requestId": f"req_{self.count:024x}",
            "blobs": [self.ident()],
            "sessionId": SESSION,
        }
        yield {"type": "tools-used", "tools": ["Bash", "Read", "Skill"], "sessionId": SESSION}

    def turn(self, *, load: bool = False) -> Iterator[dict[str, Any]]:
        """One prompt and what follows it; ``load``: the model loads the skill first."""
        yield self.user(self.text(200), promptSource="typed", origin={"kind": "human"}, turnOrigin="human")
        if load:
            yield from self.load()
        for _ in range(self.random.randint(3, 12)):
            yield from self.step()
        yield self.assistant({"type": "text", "text": self.text(self.size(900))}, "end_turn")
        yield {
            **self.head(), "type": "system", "subtype": "turn_duration", "durationMs": 5000, "timestamp": self.time(),
            "uuid": self.ident(), **self.foot(),
        }  # fmt: skip

    def load(self) -> Iterator[dict[str, Any]]:
        ident, call = self.call("Skill", {"skill": SKILL, "args": "it fails"})
        yield call
        yield self.result(ident, f"Launching skill: {SKILL}", {"success": True, "commandName": SKILL})
        body = f"Base directory for this skill: /home/u/.claude/skills/{SKILL}\n\n{self.text(6000)}"
        yield self.user([{"type": "text", "text": body}], isMeta=True, turnCompanion=True, sourceToolUseID=ident)


def write(path: Path, size: int, load: str, *, seed: int = 1, spaced: bool = False) -> int:
    """Write about ``size`` bytes to ``path`` with the load where ``load`` (of PLACES) says; the number of records.

    ``spaced``: with a space after colons and commas, as Python's ``json`` writes by itself.
    """
    session = Session(seed)
    separators = None if spaced else (",", ":")
    loaded = load == "never"
    before = {"near": size - 150_000, "middle": size // 2}.get(load, 0)
    records = written = 0
    with path.open("wb") as file:
        while True:
            loads = not loaded and written >= before
            loaded = loaded or loads
            for record in session.turn(load=loads):
                line = json.dumps(record, ensure_ascii=False, separators=separators).encode() + b"\n"
                if loaded and written + len(line) > max(size, before + 150_000):
                    return records
                file.write(line)
                written += len(line)
                records += 1


def main() -> None:
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
