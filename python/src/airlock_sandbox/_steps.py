from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generator, Iterable, List, Optional, cast

from . import types
from ._airlock_error import AirlockError
from ._commands import TextCollector, output_bytes
from ._connection import Answer
from ._deadline import Deadline
from ._faults import fault
from ._operations import Operations
from ._outputs import RichOutput
from ._server_events import Patience, Progress, Subject, events_of, follow_events, open_events
from ._transport import BACKOFF_S, RETRIES, Transport, is_refused

_INTERRUPT_S = 10.0
_RECENT_STEPS = 50

OnText = Callable[[str], Any]
OnOutput = Callable[[RichOutput], Any]


@dataclass(frozen=True)
class StepResult:
    """A step that has ended, or what there is of it now. Code that fails is a result with an `error`."""

    stdout: str
    stderr: str
    outputs: List[RichOutput]
    data: types.Step

    @property
    def id(self) -> str:
        return self.data["id"]

    @property
    def step_id(self) -> str:
        return self.data["stepId"]

    @property
    def status(self) -> types.StepStatus:
        """accepted, running, completed or failed."""
        return self.data["status"]

    @property
    def error(self) -> Optional[types.StepError]:
        """Name, message and traceback."""
        return self.data["error"]

    @property
    def cause(self) -> Optional[types.EndCause]:
        return self.data["cause"]

    @property
    def restarted(self) -> bool:
        """The interpreter was started anew during this step: its state is gone."""
        return self.data["restarted"]

    @property
    def truncated(self) -> bool:
        return self.data["truncated"]

    @property
    def duration_ms(self) -> Optional[float]:
        return self.data["durationMs"]

    @property
    def text(self) -> Optional[str]:
        """The value of the last expression as text."""
        return next((one.text for one in self.outputs if one.kind == "result"), None)


class SessionStep:
    """A step of a session, running or ended. Iterating follows its events from the beginning, every time."""

    def __init__(self, transport: Transport, *, session: str, id: str) -> None:
        self._transport = transport
        self._api = Operations(transport)
        self.session = session
        self.id = id

    def __iter__(self) -> Generator[types.StepEvent, None, None]:
        return self.events()

    def __repr__(self) -> str:
        return f"<SessionStep {self.id}>"

    def events(self, *, start: int = 0, wait_s: Optional[float] = None) -> Generator[types.StepEvent, None, None]:
        """Its output from the byte `start` on, until it has ended."""
        events = follow_events(self._transport, _subject(self.session, self.id), start=start, deadline=Deadline(wait_s))
        return cast(Generator[types.StepEvent, None, None], events)

    def get(self) -> types.Step:
        """Its state now."""
        return self._api.get_step(self.session, self.id)

    def output(self) -> StepResult:
        """Its result so far, without waiting."""
        answer = self._api.step_output(self.session, self.id)
        step = {key: value for key, value in answer.items() if key not in ("stdout", "stderr", "outputs")}
        outputs = [RichOutput.of(output) for output in answer["outputs"]]
        return StepResult(answer["stdout"], answer["stderr"], outputs, cast(types.Step, step))

    def wait(
        self,
        *,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        on_output: Optional[OnOutput] = None,
        wait_s: Optional[float] = None,
    ) -> StepResult:
        """Waits for its end. With `wait_s`, the wait ends with `TimedOutError`, and the step goes on."""
        events = self.events(wait_s=wait_s)
        return collect_step(events, on_stdout=on_stdout, on_stderr=on_stderr, on_output=on_output)

    def interrupt(self) -> None:
        """Interrupts it alone, like Ctrl-C; takes it back before its turn. A step that has ended stays as it is."""
        self._api.interrupt_session(self.session, step=self.id)


def stream_step(
    transport: Transport, session: str, *, body: Dict[str, Any], deadline: Deadline
) -> Generator[types.StepEvent, None, None]:
    """Runs code over one connection, and goes on with the output route when that breaks.

    When nothing can say whether the step arrived, it is sent again under the same id, which runs it at most once.
    """
    body.setdefault("stepId", str(uuid.uuid4()))
    try:
        progress = Progress()
        patience = Patience(deadline)
        while progress.subject is None:
            answer = _send_step(transport, session, body, deadline)
            yield from cast(Generator[types.StepEvent, None, None], events_of(answer, _started, progress, deadline))
            if progress.ended:
                return
            if progress.subject is None:
                patience.pause()
        subject = _subject(session, progress.subject)
        events = follow_events(transport, subject, start=progress.start, resumes=progress.subject, deadline=deadline)
        yield from cast(Generator[types.StepEvent, None, None], events)
    except KeyboardInterrupt:
        _interrupt_step(transport, session, body["stepId"])
        raise
    except AirlockError:
        if deadline.is_over:
            _interrupt_step(transport, session, body["stepId"])
        raise


def collect_step(
    events: Iterable[types.StepEvent],
    *,
    on_stdout: Optional[OnText] = None,
    on_stderr: Optional[OnText] = None,
    on_output: Optional[OnOutput] = None,
) -> StepResult:
    text = {"stdout": TextCollector(), "stderr": TextCollector()}
    callbacks = {"stdout": on_stdout, "stderr": on_stderr}
    outputs: List[RichOutput] = []
    step: Optional[types.Step] = None

    def push(stream: str, data: bytes, final: bool = False) -> None:
        piece = text[stream].push(data, final)
        callback = callbacks[stream]
        if piece and callback is not None:
            callback(piece)

    for event in events:
        if event["event"] == "output":
            push(event["stream"], output_bytes(event))
        elif event["event"] == "rich":
            output = RichOutput.of(event["output"])
            outputs.append(output)
            if on_output is not None:
                on_output(output)
        elif event["event"] == "ended":
            step = event["step"]
    if step is None:
        raise fault("server_unreachable", "The stream ended before the step.")
    for stream in text:
        push(stream, b"", final=True)
    return StepResult(text["stdout"].whole(), text["stderr"].whole(), outputs, step)


def _send_step(transport: Transport, session: str, body: Dict[str, Any], deadline: Deadline) -> Answer:
    """A server that refuses for now is asked twice more.

    A connection that broke may have brought the step there: then it is asked as patiently as for the output.
    """
    patience = Patience(deadline)
    is_unsure = False
    attempt = 0
    while True:
        try:
            return open_events(transport, "runStep", params={"id": session}, body=body, deadline=deadline)
        except AirlockError as error:
            if not error.retryable or deadline.is_over:
                raise
            is_unreachable = error.code == "server_unreachable"
            is_unsure = is_unsure or (is_unreachable and not is_refused(error))
            if is_unsure:
                patience.pause()
            elif attempt < RETRIES and not is_unreachable:
                deadline.sleep(BACKOFF_S * 2**attempt)
            else:
                raise
        attempt += 1


def _interrupt_step(transport: Transport, session: str, step_id: str) -> None:
    """Only the step that was sent: another one that runs meanwhile is not ours to interrupt."""
    deadline = Deadline(_INTERRUPT_S)
    params = {"id": session}
    try:
        page = transport.json("listSteps", params=params, query={"limit": _RECENT_STEPS}, deadline=deadline)
        for step in page["items"]:
            if step["stepId"] == step_id:
                query = {"step": cast(str, step["id"])}
                transport.json("interruptSession", params=params, query=query, deadline=deadline)
    except AirlockError:
        # The caller hears of the end of the wait alone; a step that cannot be interrupted ends by its timeout.
        return


def _subject(session: str, step: str) -> Subject:
    return Subject("stepOutput", {"id": session, "step": step}, _started)


def _started(event: Dict[str, Any]) -> str:
    return cast(str, event["step"]["id"])
