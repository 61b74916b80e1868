# bounded SECONDS COMMAND...: prints what the command prints, and last "exit=STATUS"; 124 where it
# did not end within SECONDS. It returns then also where the command cannot be ended: SIGKILL does
# nothing to a process in uninterruptible sleep (state D), as of nvidia-smi that waits for a GPU.
bounded() {
  bounded_s=$1
  shift
  { { timeout -k 2 "$bounded_s" "$@" </dev/null
      bounded_status=$?
      if [ $bounded_status = 137 ]; then bounded_status=124; fi
      printf '\nexit=%s\n' $bounded_status; } 2>&1 & } 2>/dev/null |
    timeout -k 2 "$((bounded_s + 4))" cat || printf '\nexit=124\n'
}
