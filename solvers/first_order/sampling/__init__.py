"""The kinds of steps that `gradient-sampling` takes, a file each."""
