from __future__ import annotations

import http.client
import json
import os
import pickle
import socket
import threading
import unittest
from typing import Any, Callable, Iterator, List, Optional
from unittest import mock

from airlock_sandbox import AirlockError, errors
from support import URL, Asked, Fate, connect, frames, is_stream, later, proxy, refusal


def times(count: int, fate: Fate) -> Callable[[Asked], Optional[Fate]]:
    """The fate of the first requests; later ones pass."""
    left = [count]

    def decide(_: Asked) -> Optional[Fate]:
        left[0] -= 1
        return fate if left[0] >= 0 else None

    return decide


def times_if(count: int, fate: Fate, matches: Callable[[Asked], bool]) -> Callable[[Asked], Optional[Fate]]:
    decide = times(count, fate)
    return lambda asked: decide(asked) if matches(asked) else None


class Retries(unittest.TestCase):
    def calls(self, decide: Callable[[Asked], Optional[Fate]], call: Callable[[Any], Any]) -> int:
        """How often a call was sent; its error is raised."""
        with proxy(decide) as (url, asked), connect(url) as airlock:
            try:
                call(airlock)
            finally:
                self.asked = asked
        return len(asked)

    def test_what_only_reads_is_sent_again_and_given_up_in_the_end(self) -> None:
        self.assertEqual(self.calls(times(2, refusal("not_ready")), lambda airlock: airlock.whoami()), 3)
        with self.assertRaises(errors.UnavailableError) as raised:
            self.calls(times(100, refusal("not_ready")), lambda airlock: airlock.whoami())
        self.assertEqual((raised.exception.code, len(self.asked)), ("not_ready", 3))

    def test_what_has_an_effect_is_sent_once(self) -> None:
        for fate in (refusal("capacity_exhausted"), Fate(lose=True)):
            with self.assertRaises(errors.UnavailableError):
                self.calls(times(1, fate), lambda airlock: airlock.sandboxes.create(ttl_ms=10_000))
            self.assertEqual(len(self.asked), 1)

    def test_after_a_lost_answer_only_what_may_be_repeated_is_sent_again(self) -> None:
        lost = Fate(lose=True)
        self.assertEqual(self.calls(times(1, lost), lambda airlock: airlock.whoami()), 2)
        named = lambda airlock: airlock.sandboxes.get_or_create("py-again").terminate()  # noqa: E731
        self.assertEqual(self.calls(times(1, lost), named), 3)

    def test_a_server_that_asks_for_much_patience_gets_its_error_passed_on(self) -> None:
        with self.assertRaises(errors.TooManyError) as raised:
            self.calls(times(1, refusal("too_many_requests", 429, retry_after="60")), lambda airlock: airlock.whoami())
        self.assertEqual((raised.exception.retry_after_s, len(self.asked)), (60.0, 1))

    def test_a_refused_connection_is_tried_again_but_never_with_a_stream(self) -> None:
        real, refused = http.client.HTTPConnection.connect, [2]

        def refuse(connection: http.client.HTTPConnection) -> None:
            refused[0] -= 1
            if refused[0] >= 0:
                raise ConnectionRefusedError(111, "refused")
            real(connection)

        with mock.patch.object(http.client.HTTPConnection, "connect", refuse):
            sandbox = connect().sandboxes.create()
            refused[0] = 1
            with connect().sandboxes.get(sandbox.id) as found:
                fresh = connect().sandboxes.get(found.id)
                fresh._transport.close()
                refused[0] = 1
                with self.assertRaises(errors.UnreachableError):
                    fresh.files.write("streamed", iter([b"once"]))
                refused[0] = 1
                self.assertEqual(fresh.files.write("whole", b"whole"), 5)

    def test_a_connection_is_used_again_and_a_closed_one_is_not(self) -> None:
        real, made = http.client.HTTPConnection.connect, []

        def count(connection: http.client.HTTPConnection) -> None:
            made.append(connection)
            real(connection)

        with mock.patch.object(http.client.HTTPConnection, "connect", count), connect() as airlock:
            airlock.whoami()
            airlock.whoami()
            self.assertEqual(len(made), 1)
            made[0].sock.shutdown(socket.SHUT_RDWR)
            airlock.whoami()
            self.assertEqual(len(made), 2)


class Streams(unittest.TestCase):
    def setUp(self) -> None:
        self.sandbox = connect().sandboxes.create()
        self.addCleanup(self.sandbox.terminate)

    def test_go_on_after_broken_connections_without_losing_or_repeating_a_byte(self) -> None:
        code = 'for i in 1 2 3 4 5 6; do head -c 3000 /dev/zero | tr "\\0" $i; sleep 0.05; done'
        with proxy(times_if(3, Fate(cut_after=5000), is_stream)) as (url, asked):
            result = connect(url).sandboxes.get(self.sandbox.id).run(code)
        self.assertEqual(result.stdout, "".join(str(digit) * 3000 for digit in range(1, 7)))
        self.assertGreaterEqual(len([one for one in asked if is_stream(one)]), 4)
        self.assertEqual(len([one for one in asked if one.method == "POST"]), 1)

    def test_go_on_when_the_server_asks_for_patience(self) -> None:
        told = {"code": "data_plane_unavailable", "message": "told", "hint": ""}
        patience = frames({"event": "error", "error": told})

        def is_output(asked: Asked) -> bool:
            return is_stream(asked) and asked.method == "GET"

        command = self.sandbox.start("echo one; sleep 0.2; echo two")
        with proxy(times_if(1, patience, is_output)) as (url, _):
            started = connect(url).sandboxes.get(self.sandbox.id).command(command.id)
            self.assertEqual(started.wait().stdout, "one\ntwo\n")
        final = frames({"event": "error", "error": {**told, "code": "guest_lost"}})
        with proxy(times_if(1, final, is_output)) as (url, _):
            with self.assertRaises(errors.UnavailableError) as raised:
                connect(url).sandboxes.get(self.sandbox.id).command(command.id).wait()
        self.assertEqual((raised.exception.code, raised.exception.message), ("guest_lost", "told"))

    def test_a_step_whose_answer_is_lost_runs_once(self) -> None:
        session = connect().sessions.create("bash", sandbox=self.sandbox)
        lost = times_if(1, Fate(lose=True), lambda asked: asked.path.endswith("/steps"))
        with proxy(lost) as (url, asked):
            result = connect(url).sessions.get(session.id).run("echo x >> count; wc -l < count")
        sent = [json.loads(one.body) for one in asked if one.method == "POST"]
        self.assertEqual((result.stdout.strip(), len(sent)), ("1", 2))
        self.assertEqual(sent[0], sent[1])

    def test_a_step_that_a_busy_server_refuses_is_sent_three_times(self) -> None:
        session = connect().sessions.create("bash", sandbox=self.sandbox)
        busy = times_if(100, refusal("too_many_steps", 429), lambda asked: asked.method == "POST")
        with proxy(busy) as (url, asked), self.assertRaises(errors.TooManyError):
            connect(url).sessions.get(session.id).run("true")
        self.assertEqual(len([one for one in asked if one.method == "POST"]), 3)

    def test_a_file_that_is_cut_raises(self) -> None:
        self.sandbox.files.write("file", b"x" * 10_000)
        with proxy(times_if(1, Fate(cut_after=5000), lambda asked: asked.path.endswith("path=file"))) as (url, _):
            with self.assertRaises(errors.UnreachableError) as raised:
                connect(url).sandboxes.get(self.sandbox.id).files.read("file")
        self.assertEqual(raised.exception.message, "The connection broke before the whole file was here.")


class Events(unittest.TestCase):
    def test_go_on_after_a_cut_a_break_and_an_error_and_tell_of_a_gap(self) -> None:
        told = {"code": "evidence_unavailable", "message": "x", "hint": ""}
        answers = [
            frames(self.at(5), self.record(6), {"event": "cut", "seq": 6}),
            frames(self.at(6), self.record(7)),
            frames(self.at(7), {"event": "error", "error": told}),
            frames(self.at(7), {"event": "gap", "seq": 9}, self.record(10)),
        ]
        seen: List[int] = []
        gaps: List[int] = []
        with proxy(lambda _: answers.pop(0)) as (url, asked):
            for record in connect(url).events(point=["command.*", "file.read"], status="done", on_gap=gaps.append):
                seen.append(record["seq"])
                if record["seq"] == 10:
                    break
        self.assertEqual((seen, gaps), ([6, 7, 10], [9]))
        self.assertEqual([one.headers.get("last-event-id") for one in asked], [None, "6", "7", "7"])
        self.assertEqual({one.path for one in asked}, {"/v1/events?point=command.%2A%2Cfile.read&status=done"})

    def test_come_over_a_real_connection_and_end_with_their_wait(self) -> None:
        events = connect().events(wait_s=60)
        self.assertEqual(next(events)["seq"], 7)
        with later(61), self.assertRaises(errors.TimedOutError):
            next(events)
        self.assertEqual(connect().event_page(after=3)["after"], 7)

    def test_raise_what_no_patience_helps(self) -> None:
        with self.assertRaises(errors.AuthenticationError):
            next(connect(api_key="al_wrong").events())
        forbidden = frames(self.at(1), {"event": "error", "error": {"code": "forbidden", "message": "no", "hint": ""}})
        with proxy(lambda _: forbidden) as (url, _), self.assertRaises(errors.ForbiddenError):
            next(connect(url).events())

    def at(self, seq: int) -> Any:
        return {"event": "at", "seq": seq}

    def record(self, seq: int) -> Any:
        return {"event": "record", "seq": seq, "record": {"seq": seq}}


class Failures(unittest.TestCase):
    def test_no_server(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
            with self.assertRaises(errors.UnreachableError) as raised:
                connect(url).whoami()
        self.assertEqual(str(raised.exception), f'No Airlock server answers at {url}. Start one with "npm start".')

    def test_another_program_answers(self) -> None:
        with proxy(lambda _: Fate(502, b"<html>", "text/html")) as (url, _):
            with self.assertRaises(errors.InternalError) as raised:
                connect(url).whoami()
        self.assertEqual(raised.exception.hint, "Check that AIRLOCK_URL is an Airlock server.")
        with proxy(lambda _: Fate(200, b"<html>", "text/html")) as (url, _):
            with self.assertRaises(errors.InternalError):
                connect(url).whoami()

    def test_http_where_https_is_asked_for_and_the_other_way_round(self) -> None:
        with self.assertRaises(errors.UnreachableError) as raised:
            connect(URL.replace("http:", "https:")).whoami()
        self.assertIn("does not speak https", raised.exception.message)
        with Greeter(b"SSH-2.0-OpenSSH\r\n") as url, self.assertRaises(errors.UnreachableError) as raised:
            connect(url).whoami()
        self.assertIn("does not speak http.", raised.exception.message)

    def test_a_silent_server_is_given_up(self) -> None:
        with Greeter(b"") as url, self.assertRaises(errors.UnreachableError):
            connect(url, timeout_s=0.2).sandboxes.create()

    def test_a_key_of_another_server_is_named(self) -> None:
        with mock.patch.dict(os.environ, {"AIRLOCK_API_KEY": "al_other"}):
            with self.assertRaises(errors.AuthenticationError) as raised:
                connect(api_key=None).whoami()
        self.assertEqual(raised.exception.message, f"AIRLOCK_API_KEY is no key of {URL}.")

    def test_a_code_of_a_later_version_is_internal_with_the_words_of_the_server(self) -> None:
        with proxy(lambda _: refusal("from_the_future", 418)) as (url, _):
            with self.assertRaises(errors.InternalError) as raised:
                connect(url).whoami()
        self.assertEqual((raised.exception.code, raised.exception.message), ("internal", "told"))

    def test_an_approval_is_waited_for_and_its_id_is_in_the_error(self) -> None:
        error = {"error": {"code": "approval_required", "message": "m", "hint": "h", "approval": "apr_1"}}
        with proxy(lambda _: Fate(428, json.dumps(error).encode())) as (url, asked):
            with self.assertRaises(errors.ApprovalRequiredError) as raised:
                connect(url, wait_approval_s=900).sandboxes.create()
        self.assertEqual(raised.exception.approval, "apr_1")
        self.assertEqual([one.headers.get("airlock-wait-approval") for one in asked], ["240"])

    def test_an_error_survives_the_way_to_another_process(self) -> None:
        with self.assertRaises(AirlockError) as raised:
            connect().sandboxes.get("sbx_" + "0" * 26)
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((type(again), vars(again)), (errors.NotFoundError, vars(raised.exception)))


class Greeter:
    """A port that says something to everybody and reads nothing."""

    def __init__(self, words: bytes) -> None:
        self._words = words
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._taken: List[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for taken in self._taken:
            taken.close()

    def _serve(self) -> None:
        for taken in self._accepted():
            self._taken.append(taken)
            if self._words:
                taken.sendall(self._words)

    def _accepted(self) -> Iterator[socket.socket]:
        while True:
            try:
                yield self._socket.accept()[0]
            except OSError:
                # It is closed.
                return


if __name__ == "__main__":
    unittest.main()
