"""Whether the methods that people call have the arguments that the operations of the server take."""

from __future__ import annotations

import inspect
import os
import tempfile
import unittest
from typing import Any, Callable, List, Set, Tuple
from unittest import mock

import airlock_sandbox
from airlock_sandbox import Airlock, Sandbox, Session, errors, types
from airlock_sandbox._body import camel
from airlock_sandbox._config import resolve_config
from airlock_sandbox._operations import ROUTES, Operations
from support import ADMIN, connect


def keys_of(body: Any) -> Set[str]:
    return set(body.__required_keys__ | body.__optional_keys__)


def arguments_of(method: Callable[..., Any], without: Set[str] = set()) -> Set[str]:
    names = set(inspect.signature(method).parameters) - {"self"} - without
    return {camel(name) for name in names}


class Arguments(unittest.TestCase):
    def test_are_those_of_the_bodies(self) -> None:
        airlock = Airlock("http://127.0.0.1:1", "al_x")
        callbacks = {"on_stdout", "on_stderr", "on_output", "wait_s"}
        rows: List[Tuple[Callable[..., Any], Set[str], Set[str]]] = [
            (airlock.sandboxes.create, set(), keys_of(types.CreateSandboxBody)),
            (airlock.sandboxes.get_or_create, {"name"}, keys_of(types.GetOrCreateSandboxBody)),
            (Sandbox.run, {"command", "wait_s"}, keys_of(types.RunCommandBody) - {"argv", "shell", "background"}),
            (Sandbox.stream, {"command", "wait_s"}, keys_of(types.RunCommandBody) - {"argv", "shell", "background"}),
            (Sandbox.start, {"command", "open_stdin"}, keys_of(types.RunCommandBody) - {"argv", "shell", "background"}),
            (Sandbox.extend, set(), keys_of(types.ExtendSandboxBody)),
            (Sandbox.connect, set(), keys_of(types.ConnectSandboxBody)),
            (Sandbox.terminate, set(), keys_of(types.TerminateSandboxBody)),
            (airlock.sessions.create, set(), keys_of(types.CreateSessionBody)),
            (Session.run, callbacks, keys_of(types.RunStepBody)),
            (Session.stream, {"wait_s"}, keys_of(types.RunStepBody)),
            (airlock.agents.register, set(), keys_of(types.RegisterAgentBody)),
            (airlock.agents.approve, {"id"}, keys_of(types.ChangeAgentBody)),
            (airlock.grants.add, {"agent"}, keys_of(types.AddGrantBody)),
            (airlock.keys.create, set(), keys_of(types.CreateKeyBody)),
            (airlock.keys.rotate, {"id"}, keys_of(types.RotateKeyBody)),
            (airlock.killswitch.on, set(), keys_of(types.TurnKillswitchOnBody)),
            (airlock.killswitch.lift, set(), keys_of(types.LiftKillswitchBody)),
            (airlock.approvals.approve, {"id"}, keys_of(types.ApproveApprovalBody)),
            (airlock.approvals.reject, {"id"}, keys_of(types.RejectApprovalBody)),
        ]
        for method, without, keys in rows:
            with self.subTest(method.__qualname__):
                self.assertEqual(arguments_of(method, without), keys)

    def test_are_those_of_the_queries(self) -> None:
        airlock = Airlock("http://127.0.0.1:1", "al_x")
        operations = Operations(mock.Mock())
        rows: List[Tuple[Callable[..., Any], Callable[..., Any]]] = [
            (airlock.sandboxes.list, operations.list_sandboxes),
            (airlock.sessions.list, operations.list_sessions),
            (airlock.agents.list, operations.list_agents),
            (airlock.keys.list, operations.list_keys),
            (airlock.approvals.list, operations.list_approvals),
            (airlock.event_page, operations.events),
        ]
        for method, operation in rows:
            with self.subTest(method.__qualname__):
                given = {"label" if name == "labels" else name for name in arguments_of(method)}
                self.assertEqual(given, arguments_of(operation))

    def test_every_name_that_is_exported_is_there(self) -> None:
        for name in airlock_sandbox.__all__:
            self.assertTrue(hasattr(airlock_sandbox, name), name)


class Registry(unittest.TestCase):
    def test_every_code_has_a_class_that_is_exported(self) -> None:
        for code, row in errors.ERRORS.items():
            self.assertTrue(issubclass(row.error, errors.AirlockError), code)
            self.assertIs(getattr(errors, row.error.__name__), row.error)
        self.assertTrue(issubclass(errors.PolicyDeniedError, errors.ForbiddenError))
        self.assertTrue(issubclass(errors.UnreachableError, errors.UnavailableError))

    def test_only_repeatable_operations_may_be_sent_again(self) -> None:
        self.assertFalse(ROUTES["createSandbox"].repeats or ROUTES["runCommand"].repeats or ROUTES["runStep"].repeats)
        self.assertTrue(ROUTES["getOrCreateSandbox"].repeats and ROUTES["terminateSandbox"].repeats)


class Config(unittest.TestCase):
    def setUp(self) -> None:
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name
        environment = mock.patch.dict(os.environ, {"AIRLOCK_HOME": self.home, "AIRLOCK_URL": "", "AIRLOCK_API_KEY": ""})
        environment.start()
        self.addCleanup(environment.stop)

    def write(self, name: str, text: str) -> None:
        with open(os.path.join(self.home, name), "w") as file:
            file.write(text)

    def test_finds_the_server_on_this_machine_and_its_key_by_role(self) -> None:
        self.write("developer.key", "al_dev\n")
        self.write("admin.key", "al_admin\n")
        config = resolve_config()
        self.assertEqual((config.origin, config.port, config.api_key), ("http://127.0.0.1:7070", 7070, "al_dev"))
        self.assertEqual(config.key_from, f"The key in {self.home}/developer.key")
        self.assertEqual(resolve_config(role="admin").api_key, "al_admin")
        with self.assertRaises(errors.InvalidRequestError):
            resolve_config(role="../developer")

    def test_prefers_arguments_over_the_environment_and_the_environment_over_files(self) -> None:
        self.write("developer.key", "al_file")
        os.environ.update({"AIRLOCK_URL": "https://airlock.example", "AIRLOCK_API_KEY": "al_env"})
        config = resolve_config()
        self.assertEqual((config.host, config.port, config.api_key), ("airlock.example", 443, "al_env"))
        config = resolve_config("http://[::1]:81/", "al_given")
        self.assertEqual((config.host, config.port, config.api_key, config.is_local), ("::1", 81, "al_given", True))

    def test_never_offers_the_key_of_this_machine_to_another_one(self) -> None:
        self.write("developer.key", "al_file")
        config = resolve_config("https://airlock.example")
        self.assertEqual((config.api_key, config.no_key), (None, "Set AIRLOCK_API_KEY."))
        with self.assertRaises(errors.AuthenticationError) as raised:
            Airlock("https://airlock.example").whoami()
        self.assertEqual(str(raised.exception), "There is no API key. Set AIRLOCK_API_KEY.")

    def test_refuses_what_is_no_address_and_what_is_no_key(self) -> None:
        for url in ("nonsense", "file:///etc/passwd", "http://user:password@localhost", "http://host:99999", "http://"):
            with self.subTest(url), self.assertRaises(errors.InternalError) as raised:
                resolve_config(url)
            self.assertEqual(raised.exception.code, "config_invalid")
        for key in ("al_x\r\nhost: evil", "a b", "schlüssel"):
            with self.subTest(key), self.assertRaises(errors.AuthenticationError):
                resolve_config("http://localhost", key)


class Administration(unittest.TestCase):
    def test_reaches_the_server(self) -> None:
        with connect() as developer, connect(api_key=ADMIN) as admin:
            self.assertEqual((developer.whoami()["role"], admin.whoami()["role"]), ("developer", "admin"))
            made = developer.agents.register("py-coder", labels={"py": "yes"}, metadata={"deep": [1, {"x": None}]})
            self.assertEqual((made["approved"], made["metadata"]), (False, {"deep": [1, {"x": None}]}))
            self.assertEqual(
                [one["id"] for one in developer.agents.list(labels={"py": "yes"}, approved=False)], ["py-coder"]
            )
            self.assertTrue(admin.agents.approve("py-coder", expected_generation=0)["approved"])
            with self.assertRaises(errors.ForbiddenError):
                developer.agents.resume("py-coder")
            budget = admin.budgets.set_agent("py-coder", {"sandboxes": 3})
            self.assertEqual(admin.budgets.of_agent("py-coder"), budget)
            self.assertNotIn("sandboxes", admin.budgets.set_agent("py-coder", {"sandboxes": None})["set"])
            key = admin.keys.create("py-key", role="developer", agents=["py-coder"])
            self.assertIn(key["key"]["id"], [one["id"] for one in admin.keys.list()])
            self.assertIsNotNone(admin.keys.revoke(key["key"]["id"])["revokedAt"])
            admin.agents.remove("py-coder")
            self.assertEqual([one["name"] for one in developer.templates.list()][:1], ["base"])
            self.assertEqual(developer.api.list_models()["items"], [])


if __name__ == "__main__":
    unittest.main()
