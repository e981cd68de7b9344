"""The paper's methods of first order, one file each."""
