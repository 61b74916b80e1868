# The file systems that folders of the cluster lie on, or will, as "key<TAB>value" lines.
# folders FOLDER… . Parsed by gpuboot/hosts/folders.py. POSIX sh, changes nothing; defines a function.
folders() {
  names="$*"
  places=
  for place in "$@"; do # the nearest that is there; a link leads to where the folder really is
    while [ ! -e "$place" ]; do place=${place%/*} && place=${place:-/}; done
    places="$places $(readlink -f "$place")"
  done
  # shellcheck disable=SC2086
  { printf '%s\n' $names; echo; timeout 20 df -Pk $places; echo; timeout 20 df -Pi $places; echo
    cat /proc/self/mounts; } 2>/dev/null | awk '
    /^$/ { part++; row = -1; next }
    { row++ }
    part == 0 { name[++names] = $1 }
    part == 1 && row { size[row] = $2 " " $4; mount[row] = $6 }
    part == 2 && row { inodes[row] = $2 " " $4 }
    part == 3 { kind[$2] = $3 " " $4 }
    END { for (i = 1; i <= names; i++) if (mount[i] in kind)
      print "folder\t" name[i], size[i], inodes[i], kind[mount[i]], mount[i] }' |
    while IFS= read -r line; do
      # XFS of before 2014 may not tell what kind a directory entry is, which overlayfs asks
      case "$line" in
        *' xfs '*) xfs_info "${line##* }" 2>/dev/null | sed -n 's/.*\(ftype=[01]\).*/xfs\t'"${line##* }"' \1/p' ;;
      esac
      printf '%s\n' "$line"
    done | awk '!seen[$0]++'
  [ -r /sys/module/zfs/version ] && printf 'zfs\t%s\n' "$(cat /sys/module/zfs/version)"
  return 0
}
