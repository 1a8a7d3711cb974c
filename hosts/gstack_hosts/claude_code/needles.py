"""What is searched for in a transcript's bytes, for each way of writing JSON.

Hot: builtins only. :mod:`gstack_hosts.claude_code.records` says why searching for a key in its quotes is safe.
"""


class Style:
    """The needles for one way of writing JSON; as they stand here, without spaces, as Claude Code does."""

    # how a record starts, what tells its kind
    parent = b'{"parentUuid":"'
    attachment = b'"attachment":{"type":"'
    progress = b'"type":"progress","data":{"type":"'
    main = b'"isSidechain":false'
    user = b'"type":"user"'
    assistant = b'"type":"assistant"'
    # its message
    message = b'"message":{'
    content = b'"content":['
    id = b'"id":"'
    # its id and time
    uuid = b'"uuid":"'
    stamp = b'"timestamp":"'
    after_uuid = b'","timestamp":"'
    # a message of the model: what follows its content, what stands before its uuid; a call and what is in it
    stop = b'],"stop_reason":'
    tail = b'"type":"assistant","uuid":"'
    call = b'[{"type":"tool_use","id":"'
    name = b'","name":"'
    path = b'"file_path":"'
    block = b'},{"type":"'
    # a result: the id of its call, in either order; what follows; another key or block; what ends its message
    ref = b'[{"tool_use_id":"'
    result = b'[{"type":"tool_result","tool_use_id":"'
    after_ref = b'","type":"tool_result","content":'
    fine = b',"is_error":false'
    key = b'","'
    another = b'"type"'
    closed = b'}]},"uuid":"'
    shut = b'},"uuid":"'
    # its value: right after the time or anywhere; what stands before the id of the call's record
    value = b'","toolUseResult":'
    any_value = b'"toolUseResult":'
    source = b'"sourceToolAssistantUUID":"'
    #: What a value starts with that holds nothing an event needs.
    dull: "tuple[bytes, ...]" = (
        b'{"stdout":',
        b'{"type":"text"',
        b'{"type":"create"',
        b'{"type":"update"',
        b'{"type":"image"',
        b'{"type":"file_unchanged"',
        b'{"filePath":',
        b'{"filenames":',
        b'{"mode":',
        b'{"oldTodos":',
        b'{"bytes":',
        b'{"query":',
    )

    def __init__(self) -> None:
        self.prepare()

    def prepare(self) -> None:
        """Lay out what is needed for each result, and for each uuid with the time behind it: needles and lengths."""
        self.of_result = (
            self.after_ref,
            len(self.after_ref),
            self.fine,
            len(self.fine),
            self.closed,
            len(self.closed),
            self.key,
            self.value,
            len(self.value),
        )
        to_stamp = 36 + len(self.after_uuid)
        self.of_pair = (self.after_uuid.decode(), to_stamp, to_stamp + 24)


def _spaced() -> Style:
    """With a space after colons and commas, as Python's ``json`` writes by itself."""

    def spaced(needle: bytes) -> bytes:
        return needle.replace(b'":', b'": ').replace(b',"', b', "').replace(b",{", b", {")

    style = Style()
    for name, value in vars(Style).items():
        if isinstance(value, bytes):
            setattr(style, name, spaced(value))
    style.dull = tuple([spaced(start) for start in Style.dull])
    style.prepare()
    return style


_COMPACT = Style()
_SPACED: "list[Style]" = []  # made when it is needed


def style_of(data: bytes, start: int) -> Style:
    """The style that the line at ``start`` is written in; the needles of the other find nothing there."""
    if data.find(b'": ', start, start + 60) < 0:
        return _COMPACT
    if not _SPACED:
        _SPACED.append(_spaced())
    return _SPACED[0]
