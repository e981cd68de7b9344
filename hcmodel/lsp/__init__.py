"""The language server of `.hc` models: `hcmodel lsp`."""
