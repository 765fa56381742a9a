"""What a Python session says about an exception, within bounds. `python.py` loads it, and is `driver` here."""

from linecache import cache as linecache
from traceback import format_exception

NAME_BYTES, MESSAGE_BYTES, TRACEBACK_BYTES = 256, 8 * 1024, 32 * 1024
KEPT_SOURCES = 256
sources = {}


def remember_source(name, code):
    """For tracebacks and `inspect`; the oldest are forgotten."""
    lines = [line + "\n" for line in code.split("\n")]
    sources[name] = (len(code), None, lines, name)
    if len(sources) > KEPT_SOURCES:
        oldest = next(iter(sources))
        del sources[oldest]
        linecache.pop(oldest, None)
    linecache[name] = sources[name]


def describe(error):
    # `checkcache` may have dropped them.
    linecache.update(sources)
    kind = type(error)
    trace = without_us(error.__traceback__)
    try:
        text = "".join(format_exception(kind, error, trace))
    except BaseException:
        text = "the traceback cannot be shown\n"
    return {
        "name": cut(kind.__name__, NAME_BYTES),
        "message": cut(message_of(error), MESSAGE_BYTES),
        "traceback": cut(text.rstrip("\n"), TRACEBACK_BYTES),
    }


def message_of(error):
    if isinstance(error, SystemExit):
        return "exit code %s" % (error.code,)
    try:
        return str(error)
    except BaseException:
        return "its message cannot be shown"


def without_us(trace):
    """Our own frames are before the first and after the last of the user's."""
    while trace is not None and trace.tb_frame.f_code.co_filename == driver.FILE:
        trace = trace.tb_next
    last, at = trace, trace
    while at is not None:
        if at.tb_frame.f_code.co_filename != driver.FILE:
            last = at
        at = at.tb_next
    if last is not None:
        last.tb_next = None
    return trace


def cut(text, size):
    """At most so many bytes; of what is longer the beginning and the end."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return data.decode("utf-8")
    mark = b"\n[...]\n"
    head = size // 4
    tail = size - head - len(mark)
    return (data[:head] + mark + data[-tail:]).decode("utf-8", "ignore")
