# For the scripts of all lives: POSIX sh, run as root on a machine of the lab. They are given
# $mirror (its URL), $host (its address), $subnet (of the lab's machines), $codename (of Debian) and
# $busybox (the tag of the image in the mirror).
set -eu
login_umask=$(umask) login_lang=${LANG-}
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

install() { # PACKAGE...
  apt-get -qq update
  apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

fail() { # MESSAGE
  echo "$*" >&2
  exit 1
}

has() { # FILE TEXT: the file has a line with the text
  grep -qF -- "$2" "$1" || fail "$1 has no line with: $2"
}

apt_updates() { # apt reads every source of the machine, with no word of complaint
  output=$(apt-get -q update 2>&1) || fail "apt-get update fails: $output"
  ! echo "$output" | grep -E '^(W|E):' >&2 || fail "apt-get update complains"
}

# made_package NAME VERSION FIELDS FOLDER: install a package with the content of a folder
made_package() {
  mkdir -p "$4/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: gpuboot lab\n%s\nDescription: %s\n' \
    "$1" "$2" "$3" "made by the gpuboot lab" | grep . > "$4/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$4" "/var/tmp/$1.deb" >/dev/null
  dpkg -i "/var/tmp/$1.deb" >/dev/null
  rm -r "$4" "/var/tmp/$1.deb"
}
