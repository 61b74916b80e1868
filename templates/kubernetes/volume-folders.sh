# MODE SINCE PATH...: tells of each folder of a volume what there is of it, as a line
# "folder<TAB>PATH<TAB>STATE<TAB>ASIDE". SINCE: seconds since 1970, after which a folder is a new one.
# MODE back: moves those back that the provisioner moved aside, and makes those that are gone.
set -eu
export LC_ALL=C
mode=$1 since=$2
shift 2
for path in "$@"; do
  aside=''
  for one in "${path%/*}"/.removed/*-"${path##*/}"; do # their stamps sort by age
    if [ -d "$one" ]; then aside=$one; fi
  done
  if [ -e "$path" ]; then
    state=there
    birth=$(stat -c %W "$path" 2>/dev/null) || birth=0 # not every file system tells
    case $birth in '' | *[!0-9]*) birth=0 ;; esac
    if [ "$birth" -gt "$since" ]; then state=anew; fi
  elif [ -n "$aside" ]; then
    state=aside
    if [ "$mode" = back ] && mv -T "$aside" "$path" >&2; then state=there; fi
  else
    state=gone
    # as the provisioner does; the kubelet would make it for root alone
    if [ "$mode" = back ]; then mkdir -p "${path%/*}" && mkdir -m 0777 "$path"; fi
  fi
  printf 'folder\t%s\t%s\t%s\n' "$path" "$state" "$aside"
done
printf 'end\tok\n'
