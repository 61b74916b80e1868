# Azure's images have Docker as moby-engine, moby-containerd and moby-runc, which conflict with
# Docker's own packages. Names and relations are theirs; what they start is a sleep.
wear() {
  for name in runc containerd engine; do
    folder=/var/tmp/moby-$name
    mkdir -p $folder/usr/bin $folder/usr/lib/systemd/system
    case $name in
      runc)
        fields='Provides: runc
Conflicts: runc
Replaces: runc'
        program=runc unit= ;;
      containerd)
        fields='Depends: moby-runc
Provides: containerd, containerd.io
Conflicts: containerd, containerd.io
Replaces: containerd, containerd.io'
        program=containerd unit=containerd ;;
      engine)
        fields='Depends: moby-containerd
Conflicts: docker, docker-ce, docker-ee, docker.io
Replaces: docker, docker-ce, docker-ee, docker.io'
        program=dockerd unit=docker ;;
    esac
    printf '#!/bin/sh\nexec sleep infinity\n' > "$folder/usr/bin/$program"
    chmod 755 "$folder/usr/bin/$program"
    [ -z "$unit" ] || printf '[Service]\nExecStart=/usr/bin/%s\n[Install]\nWantedBy=multi-user.target\n' \
      "$program" > "$folder/usr/lib/systemd/system/$unit.service"
    made_package moby-$name 1.7.27-ubuntu24.04u1 "$fields" $folder
  done
  systemctl daemon-reload
  systemctl -q enable --now containerd docker
  works
}

works() {
  systemctl -q is-active containerd || fail "moby's containerd does not run"
  systemctl -q is-active docker || fail "moby's docker does not run"
}

off() {
  systemctl -q disable --now docker containerd
  dpkg -P moby-engine moby-containerd moby-runc >/dev/null
  systemctl daemon-reload
}
