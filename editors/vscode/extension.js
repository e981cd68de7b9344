// Starts `hcmodel lsp` for files in the .hc language.
const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const [command, ...args] = workspace.getConfiguration("hcmodel").get("command");
  client = new LanguageClient(
    "hcmodel",
    "hcmodel",
    { command, args },
    { documentSelector: [{ language: "hc" }] },
  );
  try {
    await client.start();
  } catch (error) {
    window.showWarningMessage(
      `hcmodel: '${command}' could not be started. Install it with pip install "hcmodel[lsp]", ` +
        `or set hcmodel.command to its path. (${error.message})`,
    );
  }
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
