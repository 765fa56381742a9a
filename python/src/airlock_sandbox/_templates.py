from __future__ import annotations

import os
from typing import Any, Dict, Generator, List, Union, cast

from . import types
from ._deadline import NEVER
from ._faults import fault
from ._files import FileContent, as_upload
from ._operations import Operations
from ._server_events import Patience, Progress, events_of, open_events
from ._transport import Transport


class Templates:
    """Root file systems and defaults that sandboxes start from."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def list(self) -> List[types.Template]:
        return self._api.list_templates()["items"]

    def get(self, name: str) -> types.Template:
        return self._api.get_template(name)

    def put(self, name: str, spec: types.PutTemplateBody) -> types.Template:
        """Makes a template of Debian packages and defaults, or changes one. It is built when it is first used."""
        return self._api.put_template(name, spec)

    def build(self, name: str) -> Generator[types.TemplateEvent, None, None]:
        """Builds a template, or follows its build; the last event is `ended`. Leaving the loop does not end it."""
        progress = Progress()
        patience = Patience(NEVER)
        while True:
            answer = open_events(self._transport, "buildTemplate", params={"name": name}, deadline=NEVER)
            achieved = False
            # A build that failed is not tried again by itself.
            events = events_of(answer, _no_id, progress, is_final=lambda error: error.code == "template_failed")
            for event in events:
                achieved = True
                yield cast(types.TemplateEvent, event)
            if progress.ended:
                return
            patience.pause(achieved)

    def import_image(self, name: str, source: Union[FileContent, "os.PathLike[str]"]) -> types.Template:
        """Imports an image in the place of the old one: the path of a tar, or the content of one.

        A tar of a root file system, an OCI layout, or the output of `docker save`.
        """
        params = {"name": name}
        if not isinstance(source, (str, os.PathLike)):
            answer = self._transport.json("importTemplate", params=params, upload=as_upload(source))
            return cast(types.Template, answer)
        try:
            image = open(source, "rb")
        except OSError as cause:
            hint = "Give the path of a tar that is there."
            raise fault("invalid_request", f"{os.fspath(source)} cannot be read.", hint=hint) from cause
        with image:
            answer = self._transport.json("importTemplate", params=params, upload=as_upload(image))
        return cast(types.Template, answer)

    def remove(self, name: str) -> None:
        """Removes a template and, when nothing stands on it, its image."""
        self._api.remove_template(name)


def _no_id(event: Dict[str, Any]) -> str:
    return ""
