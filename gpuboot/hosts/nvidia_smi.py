"""What nvidia-smi's exit codes mean, by nvidia-smi(1), "Return value"."""

# Behind a shell command whose rows count: 14 says that an infoROM is corrupted, which is a warning.
ACCEPT_WARNING = " || test $? = 14"
