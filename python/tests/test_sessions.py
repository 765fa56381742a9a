from __future__ import annotations

import base64
import json
import time
import unittest
from typing import Any, Callable, List

from airlock_sandbox import Airlock, RichOutput, Session, errors
from support import connect, later

PIXEL = b"\x89PNG"


def rich(kind: str, data: Any) -> str:
    """A line for the runtime of the server under test, which is bash."""
    return f"echo '{json.dumps({'kind': kind, 'data': data})}' >&3"


def eventually(check: Callable[[], bool]) -> bool:
    for _ in range(300):
        if check():
            return True
        time.sleep(0.1)
    return False


class Sessions(unittest.TestCase):
    def setUp(self) -> None:
        self.airlock = connect()
        self.addCleanup(self.airlock.close)

    def test_are_opened_in_a_sandbox_listed_restarted_and_ended_without_it(self) -> None:
        with self.airlock.sandboxes.create() as sandbox:
            session = self.airlock.sessions.create("python", sandbox=sandbox, labels={"by": "me"}, ttl_ms=60_000)
            self.assertEqual((session.data["sandbox"], session.data["ownsSandbox"]), (sandbox.id, False))
            self.assertEqual([one.id for one in self.airlock.sessions.list(sandbox=sandbox.id)], [session.id])
            self.assertEqual(self.airlock.sessions.get(session.id).runtime, "python")
            self.assertEqual(session.restart().data["restarts"], 1)
            self.assertEqual(session.terminate().data["state"], "terminated")
            self.assertEqual(len(self.airlock.sessions.list(sandbox=sandbox.id, state="all")), 1)
            self.assertEqual(sandbox.refresh().data["state"], "active")

    def test_end_with_their_scope_and_so_does_the_sandbox_made_for_one(self) -> None:
        with self.airlock.sessions.create("bash", create={"limits": {"pids": 64}}) as session:
            session.files.write("a.txt", "a")
            sandbox = session.data["sandbox"]
        self.assertEqual(session.refresh().data["state"], "terminated")
        self.assertEqual(self.airlock.sandboxes.get(sandbox).data["state"], "stopped")
        with self.assertRaises(errors.EndedError) as raised:
            session.run("true")
        self.assertEqual(raised.exception.code, "session_expired")


class Steps(unittest.TestCase):
    airlock: Airlock
    session: Session

    @classmethod
    def setUpClass(cls) -> None:
        cls.airlock = connect()
        cls.session = cls.airlock.sessions.create("bash")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.session.terminate()
        cls.airlock.close()

    def test_answer_text_and_every_output_in_its_forms(self) -> None:
        bundle = {"text/plain": "42", "text/html": "<b>42</b>", "application/json": {"of": [4, 2]}}
        picture = {"image/png": base64.b64encode(PIXEL).decode(), "text/html": 7}
        result = self.session.run(f"echo out; echo err >&2; {rich('display', picture)}; {rich('result', bundle)}")
        self.assertEqual(
            (result.status, result.stdout, result.stderr, result.error), ("completed", "out\n", "err\n", None)
        )
        shown, value = result.outputs
        self.assertEqual((shown.kind, shown.png, shown.html), ("display", PIXEL, None))
        self.assertEqual((value.kind, value.text, value.html, value.png), ("result", "42", "<b>42</b>", None))
        self.assertEqual((value.json, result.text, value.latex, value.svg), ({"of": [4, 2]}, "42", None, None))
        self.assertIsNone(RichOutput("display", {"image/png": "a"}).png)

    def test_call_back_while_they_run_in_whole_characters(self) -> None:
        heard: List[str] = []
        self.session.run(
            r"printf 'a\303'; sleep 0.1; printf '\244b'; echo err >&2; " + rich("result", {"text/plain": "1"}),
            on_stdout=lambda text: heard.append(f"out {text}"),
            on_stderr=lambda text: heard.append(f"err {text}"),
            on_output=lambda output: heard.append(f"rich {output.text}"),
        )
        self.assertEqual("".join(one[4:] for one in heard if one.startswith("out")), "aäb")
        self.assertIn("err err\n", heard)
        self.assertIn("rich 1", heard)

    def test_that_fail_are_results(self) -> None:
        error = {"name": "ValueError", "message": "no", "traceback": "line 1"}
        result = self.session.run(f"echo '{json.dumps({'kind': 'error', 'error': error})}' >&3")
        self.assertEqual((result.status, result.error), ("failed", error))

    def test_run_once_per_id_and_are_looked_up_again(self) -> None:
        code = "cat; date +%N > once; cat once"
        first = self.session.run(code, step_id="py-once", stdin="in ", env={"A": "1"})
        second = self.session.run(code, step_id="py-once")
        self.assertEqual((second.id, second.stdout, second.step_id), (first.id, first.stdout, "py-once"))
        step = self.session.step(first.id)
        self.assertEqual(
            (step.get()["status"], step.output().stdout, step.wait().stdout), ("completed", first.stdout, first.stdout)
        )
        self.assertIn(first.id, [one["id"] for one in self.session.steps(limit=200)])
        with self.assertRaises(errors.ConflictError) as raised:
            self.session.run("other", step_id="py-once")
        self.assertEqual(raised.exception.code, "step_mismatch")

    def test_are_interrupted_when_the_wait_ends_and_when_ctrl_c_is_pressed(self) -> None:
        def press(_: str) -> None:
            raise KeyboardInterrupt

        waiting = self.session.stream("echo begun; exec sleep 30", step_id="py-waited", wait_s=60)
        next(waiting)
        with later(61), self.assertRaises(errors.TimedOutError):
            for _ in waiting:
                pass
        self.assertTrue(eventually(lambda: self.name_of_error("py-waited") == "Interrupted"))
        # A callback runs outside of the stream: as with a real Ctrl-C there, the step goes on.
        with self.assertRaises(KeyboardInterrupt):
            self.session.run("echo begun; exec sleep 30", step_id="py-called", on_stdout=press)
        self.assertIsNone(self.name_of_error("py-called"))
        self.session.interrupt()
        events = self.session.stream("echo begun; exec sleep 30", step_id="py-pressed")
        next(events)
        with self.assertRaises(KeyboardInterrupt):
            events.throw(KeyboardInterrupt)
        self.assertTrue(eventually(lambda: self.name_of_error("py-pressed") == "Interrupted"))

    def name_of_error(self, step_id: str) -> Any:
        step = next(one for one in self.session.steps(limit=200) if one["stepId"] == step_id)
        return step["error"] and step["error"]["name"]


if __name__ == "__main__":
    unittest.main()
