"""What is searched for in a transcript's bytes, for each way of writing JSON.

Hot: builtins only. :mod:`gstack_hosts.claude_code.records` says why searching for a key in its quotes is safe.
"""


class Style:
    """The needles for one way of writing JSON: without spaces (Claude Code), or with one after colons and commas."""

    def __init__(self, colon: str, comma: str) -> None:
        def key(name: str, value: str = "") -> str:
            return f'"{name}"{colon}{value}'

        def needle(*parts: str) -> bytes:
            return "".join(parts).encode()

        kind = key("type", '"tool_result"')
        uuid = key("uuid", '"')
        # how a record starts, what tells its kind
        self.parent = needle("{", key("parentUuid", '"'))
        self.attachment = needle(key("attachment", "{"), key("type", '"'))
        self.progress = needle(key("type", '"progress"'), comma, key("data", "{"), key("type", '"'))
        self.main = needle(key("isSidechain", "false"))
        self.user = needle(key("type", '"user"'))
        self.assistant = needle(key("type", '"assistant"'))
        # its message
        self.message = needle(key("message", "{"))
        self.content = needle(key("content", "["))
        self.id = needle(key("id", '"'))
        # its id and time
        self.uuid = needle(uuid)
        self.stamp = needle(key("timestamp", '"'))
        self.after_uuid = needle('"', comma, key("timestamp", '"'))
        # a message of the model: what follows its content, what stands before its uuid; a call and what is in it
        self.stop = needle("]", comma, key("stop_reason"))
        self.tail = needle(key("type", '"assistant"'), comma, uuid)
        self.call = needle("[{", key("type", '"tool_use"'), comma, key("id", '"'))
        self.name = needle('"', comma, key("name", '"'))
        self.path = needle(key("file_path", '"'))
        self.block = needle("}", comma, "{", key("type", '"'))
        # a result: the id of its call, in either order; what follows; another key; what ends its message
        self.ref = needle("[{", key("tool_use_id", '"'))
        self.result = needle("[{", kind, comma, key("tool_use_id", '"'))
        self.after_ref = needle('"', comma, kind, comma, key("content"))
        self.fine = needle(comma, key("is_error", "false"))
        self.key = needle('"', comma, '"')
        self.closed = needle("}]}", comma, uuid)
        self.shut = needle("}", comma, uuid)
        # its value: right after the time or anywhere; a shell's, and what follows its output
        self.value = needle('"', comma, key("toolUseResult"))
        self.any_value = needle(key("toolUseResult"))
        self.output = needle("{", key("stdout"))
        self.errors = needle(comma, key("stderr"))
        #: What a value starts with that holds nothing an event needs.
        self.dull = tuple(
            [
                needle("{", start)
                for start in (
                    key("stdout"),
                    key("type", '"text"'),
                    key("type", '"create"'),
                    key("type", '"update"'),
                    key("type", '"image"'),
                    key("type", '"file_unchanged"'),
                    key("filePath"),
                    key("filenames"),
                    key("mode"),
                    key("oldTodos"),
                    key("bytes"),
                    key("query"),
                )
            ]
        )


_COMPACT = Style(":", ",")
_SPACED: "list[Style]" = []  # made when it is needed


def style_of(data: bytes, start: int) -> Style:
    """The style that the line at ``start`` is written in; the needles of the other find nothing there."""
    if data.find(b'": ', start, start + 60) < 0:
        return _COMPACT
    if not _SPACED:
        _SPACED.append(Style(": ", ", "))
    return _SPACED[0]
