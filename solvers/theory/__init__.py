"""The paper's parameters and promises, one function for each theorem."""
