"""The driver of a Python session: runs steps in one namespace, and talks to the guest on fd 3.

How they talk is described in `session/driver.ts`. Code of a step shares this process and may do to it whatever it wants.
What is promised is that a step that plays by the rules, and most that do not, leave the next one intact; whatever else
happens ends this process, and the guest starts another. So everything that is used here between two steps is held
privately: names are bound at the start, and the builtins below are a copy of which user code knows nothing.

Text that Python itself writes goes to the step that started the thread or task, and is dropped when that step is over.
Bytes that other code writes straight to fds 1 and 2 cannot be told apart, and go to whichever step runs.
"""

# Functions that are defined below look names up here: what user code does to `builtins` is not seen.
__builtins__ = dict(vars(__import__("builtins")))

import _ast
import _contextvars
import _signal
import _thread
import fcntl
import json.encoder
import os
import posix
import select
import sys
from io import BufferedIOBase, BufferedReader, BufferedWriter, FileIO, TextIOBase, TextIOWrapper
from io import open as open_file
from types import ModuleType

THIS = sys.modules[__name__]
FILE = __file__
HERE = posix.getpid()
MAIN_THREAD = _thread.get_ident()
MIME_BYTES = 7 * 1024 * 1024
AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
ONLY_AST = _ast.PyCF_ONLY_AST
CO_COROUTINE = 0x80
SIGINT = _signal.SIGINT
HIGH_FD = 600
NULL = "/dev/null"

environ = os.environ._data
putenv, unsetenv = posix.putenv, posix.unsetenv
modules = sys.modules
exit_now = posix._exit
getpid = posix.getpid
set_signal = _signal.signal
dup2, close, open_fd, read_fd, write_fd = posix.dup2, posix.close, posix.open, posix.read, posix.write
encode_parts = json.encoder.c_make_encoder(
    None, None, json.encoder.c_encode_basestring or json.encoder.encode_basestring, None, ":", ",", False, False, False
)
decode_json = json.decoder.JSONDecoder().raw_decode
default_recursion_limit = sys.getrecursionlimit()
owner = _contextvars.ContextVar("airlock_step", default=None)


class Driver:
    """What there is one of."""

    channel = -1
    null = -1
    # Stdin of the steps that are given none.
    empty = None
    step = None
    steps = 0
    # An interrupt stops code only while this is true.
    running = False
    # A line is being written: an interrupt waits for its end.
    writing = False
    interrupted = False
    loop = None
    fflush = None
    received = b""
    # Goes out with the next line.
    owed = b""
    remember_source = describe = bundle = None


class Step:
    def __init__(self, nonce):
        self.nonce = nonce
        self.over = False
        self.lock = _thread.RLock()
        self.streams = Streams()


class Streams(dict):
    """The text that a step writes, by fd. Made when it writes: most of what is asked for is not printed."""

    def __missing__(self, fd):
        raw = BufferedWriter(FileIO(fd, "w", closefd=False))
        errors = (STDOUT if fd == 1 else STDERR).errors
        stream = TextIOWrapper(raw, encoding="utf-8", errors=errors, newline="\n", line_buffering=True)
        self[fd] = stream
        return stream


class Stream(TextIOBase):
    """`sys.stdout` and `sys.stderr` for the whole session: hands text to the step that it belongs to."""

    encoding = "utf-8"
    newlines = None
    line_buffering = True
    write_through = False
    mode = "w"
    closed = False

    def __init__(self, name, fd, errors):
        self._fd = fd
        self._errors = errors
        self.name = name
        self.buffer = Bytes(name, fd)

    @property
    def errors(self):
        return self._errors

    def write(self, text):
        step = owner.get() or Driver.step
        if step is not None:
            with step.lock:
                if not step.over:
                    return step.streams[self._fd].write(text)
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        return len(text)

    def flush(self):
        flush_stream(self._fd)

    def fileno(self):
        return self._fd

    def writable(self):
        return True

    def isatty(self):
        return False

    def reconfigure(self, **options):
        step = owner.get() or Driver.step
        if step is not None and not step.over:
            step.streams[self._fd].reconfigure(**options)

    def close(self):
        """It serves the next step too."""


class Bytes(BufferedIOBase):
    """The `buffer` of a `Stream`."""

    mode = "wb"
    closed = False

    def __init__(self, name, fd):
        self._fd = fd
        self.name = name

    def write(self, data):
        step = owner.get() or Driver.step
        if step is not None:
            with step.lock:
                if not step.over:
                    stream = step.streams[self._fd]
                    stream.flush()
                    count = stream.buffer.write(data)
                    stream.buffer.flush()
                    return count
        return memoryview(data).nbytes

    def flush(self):
        flush_stream(self._fd)

    def fileno(self):
        return self._fd

    def writable(self):
        return True

    def close(self):
        """It serves the next step too."""


def flush_stream(fd):
    step = owner.get() or Driver.step
    if step is not None:
        with step.lock:
            if not step.over and fd in step.streams:
                step.streams[fd].flush()


STDOUT = Stream("<stdout>", 1, "surrogateescape")
STDERR = Stream("<stderr>", 2, "backslashreplace")
MAIN = ModuleType("__main__")


def main():
    take_channel()
    set_signal(SIGINT, on_interrupt)
    os.register_at_fork(after_in_child=forget_channel)
    modules["__main__"] = MAIN
    MAIN.__dict__["__builtins__"] = modules["builtins"]
    sys.argv[:] = [""]
    if sys.path and sys.path[0] == FILE.rpartition("/")[0]:
        sys.path[0] = ""
    sys.stdout = sys.__stdout__ = STDOUT
    sys.stderr = sys.__stderr__ = STDERR
    send({"type": "ready", "version": "Python " + sys.version.split()[0]})
    warm_up()
    try:
        while True:
            request = next_line()
            if request["type"] == "step":
                run_step(request)
    except BaseException:
        # A step broke what we need: the guest starts another of us.
        exit_now(70)


def take_channel():
    """Out of the way of user code: to a high number, which is closed in whatever is executed."""
    try:
        Driver.channel = fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        Driver.channel = fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, 10)
    close(3)


def forget_channel():
    """A forked child is not us: it must not speak as us, and its interrupts are its own."""
    channel, Driver.channel = Driver.channel, -1
    if channel != -1:
        close(channel)
    set_signal(SIGINT, _signal.default_int_handler)


def warm_up():
    """While the first step is on its way: what nearly every session needs sooner or later."""
    errors, rich = load("errors"), load("rich")
    Driver.remember_source = errors.remember_source
    Driver.describe = errors.describe
    Driver.bundle = rich.bundle
    modules["builtins"].display = rich.display
    load("hooks").install()


def on_interrupt(_number, _frame):
    if Driver.running and not Driver.writing:
        raise KeyboardInterrupt
    Driver.interrupted = True


def next_line():
    while b"\n" not in Driver.received:
        try:
            read_more()
        except OSError:
            raise
        except Exception:
            # Raised by a signal handler that a step left behind.
            pass
    line, _, Driver.received = Driver.received.partition(b"\n")
    return decode_json(line.decode("utf-8"))[0]


def read_more():
    data = read_fd(Driver.channel, 65536)
    if not data:
        exit_now(0)
    Driver.received += data


def encode_json(value):
    return "".join(encode_parts(value, 0))


def send_with_next(message):
    """What nobody need hear before the line that follows at once."""
    line = (encode_json(message) + "\n").encode("utf-8", "replace")
    with SENDING:
        Driver.owed += line


def send(message):
    """The whole line or nothing: an interrupt comes before or after it."""
    line = (encode_json(message) + "\n").encode("utf-8", "replace")
    is_main = _thread.get_ident() == MAIN_THREAD
    Driver.writing = Driver.writing or is_main
    try:
        with SENDING:
            view = memoryview(Driver.owed + line)
            Driver.owed = b""
            while len(view) > 0:
                view = view[write_fd(Driver.channel, view) :]
    finally:
        Driver.writing = Driver.writing and not is_main
    if is_main and Driver.interrupted and Driver.running:
        Driver.interrupted = False
        raise KeyboardInterrupt


SENDING = _thread.allocate_lock()


def show(kind, data, say=send):
    """One rich output of the step that this thread or task belongs to."""
    step = owner.get() or Driver.step
    if step is None or step.over or getpid() != HERE:
        return
    flush_stream(1)
    flush_stream(2)
    size = len(encode_json(data).encode("utf-8", "replace"))
    if size > MIME_BYTES:
        text = "[dropped: %s, %d bytes; at most %d can be shown]" % (", ".join(list(data)[:4]), size, MIME_BYTES)
        data = {"text/plain": text}
    say({"type": "rich", "nonce": step.nonce, "line": {"kind": kind, "data": data}})


def run_step(request):
    step = Step(request["nonce"])
    Driver.steps += 1
    before = {name: environ.get(name.encode()) for name in request["env"]}
    set_signal(SIGINT, on_interrupt)
    error = None
    try:
        try:
            begin(step, request)
            owner.set(step)
            Driver.running = True
            if Driver.interrupted:
                raise_if_meant(step)
            run_code(request["code"])
        finally:
            Driver.running = False
    except BaseException as raised:
        Driver.running = False
        error = raised
    if getpid() != HERE:
        end_child(error)
    sys.settrace(None)
    sys.setprofile(None)
    if sys.getrecursionlimit() < default_recursion_limit:
        sys.setrecursionlimit(default_recursion_limit)
    status = "completed" if report(step, error) else "failed"
    error = None
    end(step)
    for name, value in before.items():
        set_variable(name.encode(), value)
    set_signal(SIGINT, on_interrupt)
    send({"type": "done", "nonce": step.nonce, "status": status})


def raise_if_meant(step):
    """A signal came before the step began. The line that went ahead of it says which step it was for."""
    Driver.interrupted = False
    poll = select.poll()
    poll.register(Driver.channel, select.POLLIN)
    while poll.poll(0):
        read_more()
    for line in Driver.received.split(b"\n")[:-1]:
        message = decode_json(line.decode("utf-8"))[0]
        if message["type"] == "interrupt" and message["nonce"] == step.nonce:
            raise KeyboardInterrupt


def begin(step, request):
    take_stdin(request["stdin"])
    for target, name in ((1, "stdout"), (2, "stderr")):
        open_as(target, request[name], posix.O_WRONLY)
    sys.stdout = sys.__stdout__ = STDOUT
    sys.stderr = sys.__stderr__ = STDERR
    for name, value in request["env"].items():
        set_variable(name.encode(), value.encode("utf-8", "surrogateescape"))
    Driver.step = step


def take_stdin(path):
    if path == NULL:
        to_null(0)
    else:
        open_as(0, path, posix.O_RDONLY)
    # One that reads nothing has nothing to forget, and serves until somebody breaks it.
    if path != NULL or Driver.empty is None or not is_whole(Driver.empty):
        raw = BufferedReader(FileIO(0, "r", closefd=False))
        stdin = TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape")
        Driver.empty = stdin if path == NULL else None
    else:
        stdin = Driver.empty
    sys.stdin = sys.__stdin__ = stdin


def is_whole(stdin):
    try:
        return not stdin.closed and stdin.encoding == "utf-8" and stdin.errors == "surrogateescape"
    except ValueError:
        # It was detached.
        return False


def set_variable(name, value):
    """As `os.environ` does, but without anything that can be patched."""
    if value is None:
        environ.pop(name, None)
        unsetenv(name)
    else:
        environ[name] = value
        putenv(name, value)


def open_as(target, path, flags):
    fd = open_fd(path, flags | posix.O_CLOEXEC)
    # Earlier steps may have closed 0, 1 or 2, which open then gives us.
    if fd <= 2:
        close(fd)
        fd = open_high(path, flags)
    dup2(fd, target)
    close(fd)


def open_high(path, flags):
    """Out of the way of user code."""
    fd = open_fd(path, flags | posix.O_CLOEXEC)
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        close(fd)


def run_code(code):
    name = "<step %d>" % Driver.steps
    Driver.remember_source(name, code)
    tree = compile(code, name, "exec", ONLY_AST | AWAIT, True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    space = MAIN.__dict__
    if tree.body:
        finish(compile(tree, name, "exec", AWAIT, True), space)
    if last is not None:
        value = finish(compile(_ast.Expression(last.value), name, "eval", AWAIT, True), space)
        if value is not None and not code.rstrip().endswith(";"):
            space["_"] = value
            show("result", Driver.bundle(value), send_with_next)
    if "matplotlib.pyplot" in modules:
        load("display").show_figures()


def finish(compiled, space):
    value = eval(compiled, space)
    return run_coroutine(value) if compiled.co_flags & CO_COROUTINE else value


def run_coroutine(coroutine):
    import asyncio

    if Driver.loop is None or Driver.loop.is_closed():
        Driver.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(Driver.loop)
    task = Driver.loop.create_task(coroutine)
    try:
        return Driver.loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            Driver.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        raise


def report(step, error):
    """Says why the step failed. True when it did not."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return True
    try:
        described = Driver.describe(error)
    except BaseException:
        described = {"name": "Exception", "message": "it cannot be described", "traceback": ""}
    send({"type": "rich", "nonce": step.nonce, "line": {"kind": "error", "error": described}})
    return False


def end(step):
    """What is written later belongs to nobody."""
    try:
        with step.lock:
            for stream in step.streams.values():
                stream.flush()
    except Exception:
        # User code closed or broke the fd.
        pass
    with step.lock:
        step.over = True
    flush_c()
    for fd in (0, 1, 2):
        to_null(fd)
    Driver.step = None


def flush_c():
    """Libraries may hold text in buffers of C's own."""
    if "ctypes" not in modules:
        return
    try:
        if Driver.fflush is None:
            Driver.fflush = modules["ctypes"].CDLL(None).fflush
        Driver.fflush(None)
    except Exception:
        # Not the ctypes that we know.
        pass


def to_null(fd):
    try:
        dup2(Driver.null, fd)
    except OSError:
        Driver.null = open_high(NULL, posix.O_RDWR)
        dup2(Driver.null, fd)


def end_child(error):
    """A forked child came out of the code of its step: it ends as a program would."""
    status = 0
    try:
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        elif error is not None:
            status = 1
            STDERR.write(Driver.describe(error)["traceback"] + "\n")
        flush_stream(1)
        flush_stream(2)
    finally:
        exit_now(status & 255)


def load(name):
    """Another file of ours, which shares our builtins."""
    module = modules.get("airlock_" + name)
    if module is None:
        module = ModuleType("airlock_" + name)
        with open_file(FILE.rpartition("/")[0] + "/python_%s.py" % name, encoding="utf-8") as file:
            source = file.read()
        module.__dict__.update({"__builtins__": __builtins__, "driver": THIS})
        exec(compile(source, FILE, "exec", 0, True), module.__dict__)
        modules["airlock_" + name] = module
    return module


# Not from this frame: some versions would lend it the true builtins.
eval("main()", {"main": main, "__builtins__": {}})
