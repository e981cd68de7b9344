"""The language server: `document` over the Language Server Protocol, by pygls (extra `lsp`).

Columns of the protocol count UTF-16 units from 0, those of the grammar characters from 1.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from hcmodel.grammar.syntax import Span
from hcmodel.lsp.document import Document

# Seconds after a key before the text is read: of several keys at once only the last one counts, and
# questions that wait are answered first.
PAUSE = 0.02
KINDS = {
    "variable": types.CompletionItemKind.Variable,
    "parameter": types.CompletionItemKind.Constant,
    "set": types.CompletionItemKind.Enum,
    "let": types.CompletionItemKind.Property,
    "constant": types.CompletionItemKind.Constant,
    "function": types.CompletionItemKind.Function,
    "keyword": types.CompletionItemKind.Keyword,
}


def make_server(version: str) -> LanguageServer:
    """A server with every feature that `Document` has."""
    server = LanguageServer(
        "hcmodel", version, text_document_sync_kind=types.TextDocumentSyncKind.Full
    )
    documents: dict[str, Document] = {}
    waiting: dict[str, asyncio.TimerHandle] = {}

    def refresh(uri: str) -> None:
        if uri in waiting:
            waiting.pop(uri).cancel()
        if uri not in server.workspace.text_documents:
            return  # closed in the meantime
        source = server.workspace.get_text_document(uri)
        document = documents.setdefault(uri, Document(_path(uri)))
        problems = document.update(source.source)
        found = [
            types.Diagnostic(
                range=_range(document.text, each.span),
                message=each.message,
                severity=types.DiagnosticSeverity.Error
                if each.is_error
                else types.DiagnosticSeverity.Information,
                source="hcmodel",
            )
            for each in problems
        ]
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=source.version)
        )

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in waiting:
            waiting.pop(uri).cancel()
        document = documents.setdefault(uri, Document(_path(uri)))
        document.text = server.workspace.get_text_document(uri).source
        waiting[uri] = asyncio.get_running_loop().call_later(PAUSE, refresh, uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.pop(params.text_document.uri, None)

    _add_questions(server, documents)
    return server


def _add_questions(server: LanguageServer, documents: dict[str, Document]) -> None:
    def document_of(params: Any) -> Document:
        return documents.get(params.text_document.uri, Document())

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = document_of(params)
        found = document.hover(*_place(document.text, params.position))
        if found is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, found[0])
        return types.Hover(content, _range(document.text, found[1]))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION)
    def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        return [
            types.CompletionItem(
                label=each.word, kind=KINDS[each.kind], detail=each.about or each.kind
            )
            for each in document_of(params).completions()
        ]

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def define(params: types.DefinitionParams) -> types.Location | None:
        document = document_of(params)
        span = document.definition(*_place(document.text, params.position))
        if span is None:
            return None
        return types.Location(params.text_document.uri, _range(document.text, span))

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def arrange(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = document_of(params)
        text = document.formatted()
        if text is None or text == document.text:
            return None
        whole = types.Range(
            types.Position(0, 0), types.Position(len(document.text.splitlines()) + 1, 0)
        )
        return [types.TextEdit(whole, text)]


def _path(uri: str) -> Path | None:
    parts = urlparse(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _place(text: str, position: types.Position) -> tuple[int, int]:
    """Line and column of the grammar for a position of the protocol."""
    units = position.character
    for number, character in enumerate(_line(text, position.line)):
        if units <= 0:
            return position.line + 1, number + 1
        units -= len(character.encode("utf-16-le")) // 2
    return position.line + 1, len(_line(text, position.line)) + 1


def _range(text: str, span: Span) -> types.Range:
    return types.Range(
        _position(text, span.line, span.column), _position(text, span.end_line, span.end_column)
    )


def _position(text: str, line: int, column: int) -> types.Position:
    before = _line(text, line - 1)[: column - 1]
    return types.Position(line - 1, len(before.encode("utf-16-le")) // 2)


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number] if 0 <= number < len(lines) else ""
