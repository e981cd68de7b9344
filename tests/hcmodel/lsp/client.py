"""A small client of the Language Server Protocol over a process's standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Client:
    """Starts the server; requests wait for their answer, notifications of the server are kept."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hcmodel", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.notes: list[dict[str, Any]] = []
        self._number = 0

    def __enter__(self) -> Client:
        self.capabilities = self.ask("initialize", processId=None, rootUri=None, capabilities={})
        self.tell("initialized")
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("shutdown")
        self.tell("exit")
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            if self.process.poll() is not None and not line:
                raise EOFError(f"the server ended with {self.process.returncode}")
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return found

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        wanted = {"params": params} if params else {}
        self._send({"id": self._number, "method": method, **wanted})
        while True:
            message = self._receive()
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self.notes.append(message)

    def diagnostics(self) -> list[dict[str, Any]]:
        """The next list of diagnostics that the server publishes."""
        while True:
            for place, note in enumerate(self.notes):
                if note.get("method") == "textDocument/publishDiagnostics":
                    del self.notes[place]
                    found: list[dict[str, Any]] = note["params"]["diagnostics"]
                    return found
            self.notes.append(self._receive())

    def open(self, uri: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "languageId": "hc", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self.diagnostics()

    def change(self, uri: str, text: str, version: int) -> list[dict[str, Any]]:
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])
        return self.diagnostics()

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri}, position=position)
