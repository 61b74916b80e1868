# Holds the lock of a run for as long as standard input tells that the run lives. POSIX sh.
# It reads the run's record, the record that the run expects to find (*: any), and then a byte now
# and then; the end of all that gives the lock back. Parsed by gpuboot/hosts/run_lock.py.
# shellcheck disable=SC2154  # who runs it sets folder, patience_s and mark
export LC_ALL=C
IFS= read -r record || exit 1
IFS= read -r expected || exit 1
file=$folder/run.lock
command -v flock >/dev/null || { echo "there is no flock"; exit 1; }
mkdir -p -m 0755 "$folder" || exit 1
umask 077
exec 9>>"$file" || exit 1
tell() { printf '\n%s%s\t%s\t%s\n' "$mark" "$1" "$(($(date +%s) - $(stat -c %Y "$file")))" "$before"; }
if ! flock -n 9; then
  sleep 0.3 # whoever has just taken it is about to write
  before=$(cat "$file")
  tell held
  exit 0
fi
before=$(cat "$file")
case $before in
  "$expected" | "$record") ;;
  *)
    if [ "$expected" != '*' ]; then
      tell changed
      exit 0
    fi
    ;;
esac
printf '%s\n' "$record" >"$file" || exit 1
tell taken
# children must not hold the file open: the lock ends with this shell
while byte=$(timeout "$patience_s" head -c 1 9>&-) && [ -n "$byte" ]; do :; done
