"""Whether the TextMate grammar, run by VS Code's own engine, agrees with the parser on every example.

    python -m tests.benchmarks highlighting

Needs node and npm, which fetches `vscode-textmate` and `vscode-oniguruma` into a temporary folder. Each
token of the parser must have a scope of its kind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hcmodel.grammar.parser import tokenize

ROOT = Path(__file__).parents[2]
SCRIPT = """
const fs = require("fs"), path = require("path");
const oniguruma = require("vscode-oniguruma"), textmate = require("vscode-textmate");
const home = path.dirname(require.resolve("vscode-oniguruma/package.json"));
const wasm = path.join(home, "release/onig.wasm");
const library = oniguruma.loadWASM(fs.readFileSync(wasm).buffer).then(() => ({
  createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
  createOnigString: (text) => new oniguruma.OnigString(text),
}));
const [, , grammarFile, ...models] = process.argv;
const registry = new textmate.Registry({
  onigLib: library,
  loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile),
});
registry.loadGrammar("source.hc").then((grammar) => {
  const found = {};
  for (const model of models) {
    let state = textmate.INITIAL;
    found[model] = fs.readFileSync(model, "utf8").split("\\n").map((line) => {
      const result = grammar.tokenizeLine(line, state);
      state = result.ruleStack;
      const scope = (each) => each.scopes.slice(1).join(" ");
      return result.tokens.map((each) => [each.startIndex, each.endIndex, scope(each)]);
    });
  }
  console.log(JSON.stringify(found));
});
"""
OPERATORS = ("COMPARE", "SIGN", "MULTIPLY", "POWER", "TRANSPOSE", "RANGE", "EQUAL")
# Kinds of tokens of the parser, and how their scope begins. Names have several scopes, or none.
SCOPES = {
    **dict.fromkeys(("SET", "PARAM", "LET", "VAR"), "storage.type"),
    **dict.fromkeys(("MINIMIZE", "MAXIMIZE", "SUBJECT_TO", "HIDDEN", "START"), "keyword.control"),
    **dict.fromkeys(("FOR", "IN", "IF", "AND", "OR", "NOT"), "keyword.operator.word"),
    **dict.fromkeys(OPERATORS, "keyword.operator"),
    **dict.fromkeys(("COMMA", "COLON", "SEMICOLON"), "punctuation"),
    "NUMBER": "constant.numeric",
    "STRING": "string.quoted",
}
NAMES = ("", "variable.", "support.", "entity.", "constant.language")


def scopes(models: list[Path]) -> dict[str, Any]:
    """Start, end and scope of each token of each line, by the engine of VS Code."""
    with tempfile.TemporaryDirectory() as folder:
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
        packages = ["vscode-textmate", "vscode-oniguruma"]
        subprocess.run([*install, *packages], cwd=folder, check=True)
        script = Path(folder) / "tokens.js"
        script.write_text(SCRIPT)
        grammar = ROOT / "grammar" / "hc.tmLanguage.json"
        command = ["node", str(script), str(grammar), *map(str, models)]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def fits(kind: str, scope: str) -> bool:
    if kind == "NAME":
        return any(scope.startswith(each) if each else not scope for each in NAMES)
    return scope.startswith(SCOPES[kind]) if kind in SCOPES else True


def main() -> int:
    models = sorted((ROOT / "examples").rglob("*.hc"))
    counts, wrong = Counter[str](), 0
    for name, lines in scopes(models).items():
        tokens, _ = tokenize(Path(name).read_text("utf-8"))
        for token in tokens:
            if token.type == "NEWLINE":
                continue
            assert token.line is not None
            assert token.column is not None
            place = token.column - 1
            scope = next(s for first, end, s in lines[token.line - 1] if first <= place < end)
            counts[token.type] += 1
            if not fits(token.type, scope):
                wrong += 1
                print(f"{name}:{token.line}:{token.column}: {token} ({token.type}) is '{scope}'")
    print(f"{len(models)} models, {counts.total()} tokens of {len(counts)} kinds, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
