from __future__ import annotations

import os
import tempfile
import threading
import unittest
from typing import Any, Dict

from airlock_sandbox import Airlock, AirlockError, Sandbox, errors, output_bytes
from support import connect


class Sandboxes(unittest.TestCase):
    def setUp(self) -> None:
        self.airlock = connect()
        self.addCleanup(self.airlock.close)

    def test_are_created_listed_changed_and_ended(self) -> None:
        with self.airlock.sandboxes.create(name="py-one", labels={"by": "python"}, ttl_ms=60_000) as sandbox:
            self.assertEqual(sandbox.name, "py-one")
            self.assertEqual(sandbox.data["ttlMs"], 60_000)
            listed = self.airlock.sandboxes.list(labels={"by": "python"})
            self.assertEqual([one.id for one in listed], [sandbox.id])
            self.assertEqual(self.airlock.sandboxes.get(sandbox.id).data["id"], sandbox.id)
            self.assertEqual(self.airlock.sandboxes.get_or_create("py-one").id, sandbox.id)
            self.assertEqual(sandbox.set_limits({"pids": 64}).data["limits"]["pids"], 64)
            self.assertEqual(sandbox.pause().data["state"], "paused")
            self.assertEqual(sandbox.resume().data["state"], "active")
            before = sandbox.data["expiresAt"]
            self.assertGreater(sandbox.extend(120_000).data["expiresAt"], before)
            with self.assertRaises(errors.ConflictError) as raised:
                self.airlock.sandboxes.create(name="py-one")
            self.assertEqual(raised.exception.code, "name_taken")
        self.assertEqual(sandbox.data["state"], "stopped")
        self.assertEqual(sandbox.terminate().refresh().data["endReason"], "terminated")

    def test_a_page_leads_to_the_next(self) -> None:
        made = [self.airlock.sandboxes.create(labels={"page": "yes"}) for _ in range(3)]
        first = self.airlock.sandboxes.list(labels={"page": "yes"}, limit=2)
        second = self.airlock.sandboxes.list(labels={"page": "yes"}, limit=2, cursor=first.next_cursor)
        self.assertEqual(len(first), 2)
        self.assertEqual(sorted(one.id for page in (first, second) for one in page), sorted(one.id for one in made))
        self.assertIsNone(second.next_cursor)
        for one in made:
            one.terminate()


class Commands(unittest.TestCase):
    airlock: Airlock
    sandbox: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        cls.airlock = connect()
        cls.sandbox = cls.airlock.sandboxes.create()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.terminate()
        cls.airlock.close()

    def test_a_line_and_a_list_answer_output_and_exit_code(self) -> None:
        result = self.sandbox.run("echo out; echo err >&2; exit 3")
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 3))
        self.assertEqual(
            (result.signal, result.cause, result.timed_out, result.truncated), (None, "exit", False, False)
        )
        result = self.sandbox.run(["sh", "-c", 'cat; echo "$1 $WHO"', "sh", "$HOME"], env={"WHO": "me"}, stdin="in ")
        self.assertEqual(result.stdout, "in $HOME me\n")

    def test_a_command_of_the_wrong_type_is_refused_before_it_is_sent(self) -> None:
        wrong: Any = {"shell": "ls"}
        with self.assertRaises(errors.InvalidRequestError) as raised:
            self.sandbox.run(wrong)
        self.assertIn("run('ls -la')", raised.exception.hint)
        with self.assertRaises(errors.InvalidRequestError):
            self.sandbox.start(["cat"], stdin="a", open_stdin=True)

    def test_a_timeout_of_the_command_is_a_result(self) -> None:
        result = self.sandbox.run(["sleep", "30"], timeout_ms=1000)
        self.assertEqual((result.timed_out, result.exit_code, result.cause), (True, None, "timeout"))

    def test_a_stream_yields_events_with_bytes_that_are_no_text(self) -> None:
        kinds, data = [], b""
        for event in self.sandbox.stream(r"printf '\377\000a'"):
            kinds.append(event["event"])
            if event["event"] == "output":
                data += output_bytes(event)
        self.assertEqual((kinds[0], kinds[-1], data), ("started", "ended", b"\xff\x00a"))

    def test_a_character_that_is_cut_in_two_arrives_whole(self) -> None:
        result = self.sandbox.run(r"printf 'a\303'; sleep 0.1; printf '\244b'")
        self.assertEqual(result.stdout, "aäb")

    def test_a_command_is_started_fed_followed_twice_and_signalled(self) -> None:
        command = self.sandbox.start(["cat"], open_stdin=True)
        command.write("one ")
        command.end(b"two")
        self.assertEqual(b"".join(command.stdout()), b"one two")
        self.assertEqual(command.wait().stdout, "one two")
        self.assertEqual(command.output().stdout, "one two")
        self.assertEqual([event["event"] for event in command.events(start=7)], ["started", "ended"])
        sleeping = self.sandbox.start(["sleep", "30"])
        self.assertEqual(sleeping.get()["state"], "running")
        sleeping.signal("SIGTERM")
        self.assertEqual((sleeping.wait().signal, sleeping.wait().exit_code), ("SIGTERM", None))
        with self.assertRaises(errors.ConflictError) as raised:
            sleeping.signal("SIGTERM")
        self.assertEqual(raised.exception.code, "command_ended")
        with self.assertRaises(errors.NotFoundError) as lost:
            list(command.full_output())
        self.assertEqual(lost.exception.code, "output_not_kept")

    def test_the_end_of_a_wait_leaves_the_command_running(self) -> None:
        command = self.sandbox.start(["sleep", "30"])
        with self.assertRaises(errors.TimedOutError) as raised:
            command.wait(wait_s=0.2)
        self.assertEqual((raised.exception.code, command.get()["state"]), ("timeout", "running"))
        command.signal("SIGKILL")

    def test_leaving_a_stream_closes_its_connection_and_not_the_command(self) -> None:
        for event in self.sandbox.stream("echo begun; exec sleep 30 # left"):
            if event["event"] == "output":
                break
        running = next(one for one in self.sandbox.commands() if "left" in one["argv"][-1])
        self.assertEqual(running["state"], "running")
        self.sandbox.command(running["id"]).signal("SIGKILL")

    def test_threads_share_a_client(self) -> None:
        said: Dict[int, str] = {}

        def run(number: int) -> None:
            said[number] = self.sandbox.run(f"echo {number}").stdout

        threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(said, {number: f"{number}\n" for number in range(6)})


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.airlock = connect()
        self.addCleanup(self.airlock.close)
        self.sandbox = self.airlock.sandboxes.create()
        self.addCleanup(self.sandbox.terminate)
        self.files = self.sandbox.files
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name

    def test_are_written_read_listed_moved_and_removed(self) -> None:
        self.files.mkdir("dir/deep")
        self.assertEqual(self.files.write("dir/a.txt", "hellö"), 6)
        self.files.append("dir/a.txt", b" there")
        self.assertEqual(self.files.read_text("dir/a.txt"), "hellö there")
        self.assertEqual(self.files.stat("dir/a.txt")["size"], 12)
        self.files.move("dir/a.txt", "dir/b.txt")
        listing = self.files.list("dir")
        self.assertEqual(([entry["name"] for entry in listing.entries], listing.truncated), (["b.txt", "deep"], False))
        self.assertTrue(self.files.list("dir", limit=1).truncated)
        self.assertEqual(self.files.write("empty", b""), 0)
        self.assertEqual(self.files.read("empty"), b"")
        self.files.remove("dir", recursive=True)
        with self.assertRaises(errors.NotFoundError) as raised:
            self.files.stat("dir")
        self.assertEqual(raised.exception.code, "file_not_found")

    def test_larger_than_a_buffer_go_both_ways_in_pieces(self) -> None:
        chunk = os.urandom(1024 * 1024)
        self.assertEqual(self.files.write("big", (chunk for _ in range(5))), 5 * len(chunk))
        self.assertEqual(b"".join(self.files.read_stream("big")), chunk * 5)

    def test_are_copied_from_and_to_this_machine(self) -> None:
        local, back = os.path.join(self.home, "local"), os.path.join(self.home, "back")
        data = os.urandom(200_000)
        with open(local, "wb") as file:
            file.write(data)
        self.assertEqual(self.files.upload(local, "copy"), len(data))
        self.assertEqual(self.files.download("copy", back), len(data))
        with open(back, "rb") as file:
            self.assertEqual(file.read(), data)
        with self.assertRaises(errors.NotFoundError):
            self.files.download("nothing", back)
        self.assertEqual(sorted(os.listdir(self.home)), ["back", "local"])
        with self.assertRaises(errors.InvalidRequestError):
            self.files.upload(os.path.join(self.home, "nothing"), "copy")

    def test_errors_carry_code_hint_request_id_and_whether_to_try_again(self) -> None:
        with self.assertRaises(AirlockError) as raised:
            self.files.read("nothing")
        error = raised.exception
        self.assertIsInstance(error, errors.NotFoundError)
        self.assertEqual(
            (error.code, error.status, error.retryable, error.fixed_by), ("file_not_found", 404, False, "caller")
        )
        self.assertEqual(str(error), "There is no such file in the sandbox. List its directory.")
        self.assertRegex(error.request_id or "", "^req_")


if __name__ == "__main__":
    unittest.main()
