# The keys in a file of a package repository. POSIX sh, changes nothing; defines functions.
#
# repository_keys FILE NAME : the primary keys of a file, one a line: "NAME<TAB>fingerprint end", the
# end of its validity in seconds since 1970; 0: never. A subkey may sign in its place, so it is the
# end of whichever lasts longest, and never later than that of the primary key.
repository_keys() {
  command -v gpg >/dev/null || return 0
  # without a keyring gpg leaves no file behind, and needs no folder
  gpg --homedir /run/gpuboot --no-permission-warning --batch --no-keyring --trust-model always \
    --show-keys --with-colons "$1" 2>/dev/null | awk -F : -v "name=$2" '
    function report() {
      if (fingerprint != "") {
        if (signs + 0 && (end == 0 || signs < end)) end = signs
        print name "\t" fingerprint " " end
      }
      fingerprint = ""
    }
    function sign(until) {
      signs = signs == "0" || until == 0 ? "0" : until > signs + 0 ? until : signs
    }
    $1 == "pub" { report(); end = $7 + 0; signs = ""; waiting = 1; if ($12 ~ /s/) sign(end) }
    $1 == "sub" && $12 ~ /s/ { sign($7 + 0) }
    $1 == "fpr" && waiting { fingerprint = $10; waiting = 0 }
    END { report() }'
}

# configured_keys : the keys of gpuboot's own repositories, as "repository_key<TAB>name fingerprint
# end". Parsed by gpuboot/hosts/repository_keys.py.
configured_keys() {
  for file in /etc/apt/keyrings/gpuboot-*.asc /etc/pki/rpm-gpg/gpuboot-*.asc; do
    [ -r "$file" ] || continue
    name=${file##*/gpuboot-}
    repository_keys "$file" "${name%.asc}" | sed 's/\t/ /; s/^/repository_key\t/'
  done
}
