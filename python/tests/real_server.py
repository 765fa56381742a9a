"""The client against a real server with real sandboxes."""

from __future__ import annotations

import os
import threading
import unittest
from typing import List

from airlock_sandbox import Airlock, Sandbox, errors, types
from airlock_sandbox._commands import collect_command
from support import ADMIN, DEVELOPER, URL, connect

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
POLICY = "py-asks"


class RealServer(unittest.TestCase):
    airlock: Airlock
    sandbox: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        cls.airlock = connect()
        cls.sandbox = cls.airlock.sandboxes.create(template="base", ttl_ms=600_000, labels={"by": "python"})

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.terminate()
        cls.airlock.close()

    def test_a_command_runs_isolated(self) -> None:
        result = self.sandbox.run("id -u; cat; exit 3", stdin="fed\n", env={"A": "b"}, cwd="/tmp")
        self.assertEqual((result.stdout, result.exit_code, result.cause), ("1000\nfed\n", 3, "exit"))
        self.assertEqual(self.sandbox.run(["sleep", "60"], timeout_ms=1000).cause, "timeout")
        with self.assertRaises(errors.UnprocessableError) as raised:
            self.sandbox.run(["no-such-program"])
        self.assertEqual(raised.exception.code, "executable_not_found")
        isolation = self.sandbox.refresh().data["isolation"]
        self.assertEqual(isolation and isolation["network"], "none")

    def test_output_over_its_cap_is_kept_whole(self) -> None:
        command = self.sandbox.start("head -c 300000 /dev/zero | tr '\\0' x", max_output_bytes=1024)
        result = command.wait()
        self.assertTrue(result.truncated)
        self.assertLess(len(result.stdout), 10_000)
        self.assertEqual(b"".join(command.full_output()), b"x" * 300_000)

    def test_files_go_in_and_out(self) -> None:
        data = os.urandom(3_000_000)
        self.sandbox.files.mkdir("data")
        self.assertEqual(self.sandbox.files.write("data/file", iter([data])), len(data))
        self.assertEqual(self.sandbox.files.read("data/file"), data)
        self.assertEqual(self.sandbox.run("wc -c < data/file").stdout, "3000000\n")
        with self.assertRaises(errors.AirlockError) as raised:
            self.sandbox.files.read("/root/secret")
        self.assertIn(raised.exception.code, ("permission_denied", "file_not_found"))

    def test_a_session_remembers_and_shows(self) -> None:
        heard: List[str] = []
        with self.airlock.sessions.create("python", sandbox=self.sandbox) as session:
            session.run("x = 6")
            result = session.run("print('on'); x * 7", on_stdout=heard.append)
            self.assertEqual((result.status, result.text, "".join(heard)), ("completed", "42", "on\n"))
            shown = session.run(
                "class P:\n  def _repr_png_(self):\n    import base64\n    return base64.b64decode('%s')\nP()" % PIXEL
            )
            self.assertTrue((shown.outputs[0].png or b"").startswith(b"\x89PNG"))
            failed = session.run("1 / 0")
            self.assertEqual((failed.status, failed.error and failed.error["name"]), ("failed", "ZeroDivisionError"))
            with self.assertRaises(errors.TimedOutError):
                session.run("import time; time.sleep(60)", wait_s=2)
            self.assertEqual(session.run("x").text, "6")

    def test_a_sandbox_is_paused_resumed_extended_and_limited(self) -> None:
        self.assertEqual(self.sandbox.pause().data["state"], "paused")
        with self.assertRaises(errors.ConflictError) as raised:
            self.sandbox.run("true")
        self.assertEqual(raised.exception.code, "sandbox_paused")
        self.assertEqual(self.sandbox.resume().extend(900_000).data["state"], "active")
        self.assertEqual(self.sandbox.set_limits({"pids": 99}).data["limits"]["pids"], 99)
        self.assertEqual(self.sandbox.run("echo again").stdout, "again\n")

    def test_records_are_followed_from_the_first_command_on(self) -> None:
        after = self.airlock.event_page(limit=1)["after"]
        self.sandbox.run("echo recorded")
        events = self.airlock.events(point="command.run", sandbox=self.sandbox.id, after=after, wait_s=60)
        self.assertEqual(next(events)["point"], "command.run")
        events.close()

    def test_a_person_is_asked_and_the_call_goes_on(self) -> None:
        rule: types.PolicyRuleInput = {
            "id": "tee",
            "effect": "ask",
            "risk": "high",
            "reason": "Tests ask.",
            "kind": "command",
            "match": {"programs": ["tee"]},
        }
        admin = connect(api_key=ADMIN)
        admin.api.put_policy(POLICY, {"document": {"name": POLICY, "rules": [rule]}})
        try:
            with self.assertRaises(errors.ApprovalRequiredError) as raised:
                self.sandbox.run(["tee", "log"], stdin="x")
            approval = raised.exception.approval or ""
            self.assertEqual(admin.approvals.get(approval)["state"], "pending")
            self.assertEqual(admin.approvals.approve(approval, note="go on")["state"], "approved")
            self.assertEqual(self.sandbox.run(["tee", "log"], stdin="x").stdout, "x")
            self.assertEqual(admin.approvals.get(approval)["state"], "used")
            self.assertEqual(self.waiting(admin, approve=True), "y")
            self.assertEqual(self.waiting(admin, approve=False), "approval_required or policy_denied")
        finally:
            admin.api.remove_policy(POLICY)

    def waiting(self, admin: Airlock, *, approve: bool) -> str:
        """Runs what is asked about with a client that waits, while a person answers."""

        def answer() -> None:
            for event in admin.approvals.watch(wait_s=60):
                if event["event"] == "pending" and event["approval"]["sandbox"] == self.sandbox.id:
                    one = event["approval"]["id"]
                    admin.approvals.approve(one) if approve else admin.approvals.reject(one)
                    return

        person = threading.Thread(target=answer)
        person.start()
        try:
            found = connect(wait_approval_s=60).sandboxes.get(self.sandbox.id)
            return found.run(["tee", "log"], stdin="y").stdout
        except (errors.ApprovalRequiredError, errors.PolicyDeniedError):
            return "approval_required or policy_denied"
        finally:
            person.join()

    def test_agents_keys_and_budgets_are_kept_apart(self) -> None:
        admin = connect(api_key=ADMIN)
        with self.assertRaises(errors.ForbiddenError):
            self.airlock.keys.list()
        made = admin.keys.create("py-key", role="auditor")
        auditor = connect(api_key=made["secret"])
        with self.assertRaises(errors.ForbiddenError):
            auditor.sandboxes.create()
        admin.keys.revoke(made["key"]["id"])
        with self.assertRaises(errors.AuthenticationError):
            auditor.whoami()
        self.assertEqual(admin.budgets.of_agent("default")["agent"], "default")

    def test_the_example_of_the_readme_runs(self) -> None:
        """As a newcomer would: address and key from the environment."""
        os.environ.update({"AIRLOCK_URL": URL, "AIRLOCK_API_KEY": DEVELOPER})
        with Airlock() as airlock, airlock.sandboxes.create() as sandbox:
            self.assertEqual(sandbox.run("python3 -c 'print(6 * 7)'").stdout, "42\n")

    def test_a_killed_sandbox_says_so(self) -> None:
        with self.airlock.sandboxes.create(template="base") as sandbox:
            events = sandbox.stream(["sleep", "60"], wait_s=60)
            self.assertEqual(next(events)["event"], "started")
            report = connect(api_key=ADMIN).killswitch.on("sandbox", sandbox.id, reason="a test")
            self.assertEqual(report["unverified"], [])
            self.assertEqual(collect_command(events).cause, "killed_by_policy")
            with self.assertRaises(errors.AirlockError) as raised:
                sandbox.run("true")
            self.assertIn(raised.exception.code, ("killed", "sandbox_ended", "sandbox_not_active"))


if __name__ == "__main__":
    unittest.main()
