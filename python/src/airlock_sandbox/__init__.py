"""Runs untrusted code in Airlock sandboxes.

from airlock_sandbox import Airlock

with Airlock().sandboxes.create() as sandbox:
    print(sandbox.run("python3 -c 'print(6 * 7)'").stdout)
"""

from . import errors, types
from ._airlock_error import AirlockError
from ._body import Page
from ._client import Airlock
from ._commands import CommandResult, RunningCommand, output_bytes
from ._files import FileListing, SandboxFiles
from ._operations import VERSION as __version__
from ._operations import Operations
from ._outputs import RichOutput
from ._sandboxes import Sandbox, Sandboxes
from ._sessions import Session, Sessions
from ._steps import SessionStep, StepResult

__all__ = [
    "Airlock",
    "AirlockError",
    "CommandResult",
    "FileListing",
    "Operations",
    "Page",
    "RichOutput",
    "RunningCommand",
    "Sandbox",
    "SandboxFiles",
    "Sandboxes",
    "Session",
    "SessionStep",
    "Sessions",
    "StepResult",
    "__version__",
    "errors",
    "output_bytes",
    "types",
]
