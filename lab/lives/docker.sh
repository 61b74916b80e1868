# As docs.docker.com and NVIDIA's guide have people set it up, from the lab's mirror: a container that
# serves a page from a volume and starts at boot.
toolkit=/etc/apt/sources.list.d/nvidia-container-toolkit.list

wear() {
  mkdir -p /etc/apt/keyrings
  curl -fsSL "$mirror/apt/docker/linux/debian/gpg" -o /etc/apt/keyrings/docker.asc
  echo "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.asc] $mirror/apt/docker/linux/debian $codename stable" \
    > /etc/apt/sources.list.d/docker.list
  curl -fsSL "$mirror/apt/libnvidia-container/gpgkey" |
    gpg --batch --yes --dearmor -o /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg
  cat > $toolkit <<END
deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] $mirror/apt/libnvidia-container/stable/deb/\$(ARCH) /
#deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] $mirror/apt/libnvidia-container/experimental/deb/\$(ARCH) /
END
  install docker-ce docker-ce-cli containerd.io docker-compose-plugin nvidia-container-toolkit
  image=${mirror#https://}/docker.io/library/busybox:$busybox
  docker pull -q "$image" >/dev/null
  docker volume create site >/dev/null
  docker run --rm -v site:/www --entrypoint /bin/busybox "$image" sh -c 'echo data of the site > /www/index.html'
  docker rm -f site >/dev/null 2>&1 || :
  docker run -d --name site --restart always -p 18080:80 -v site:/www --entrypoint /bin/busybox "$image" httpd -f -h /www >/dev/null
  works
}

works() {
  apt_updates
  [ "$(docker inspect -f '{{.State.Running}}' site)" = true ] || fail "the container does not run"
  page=$(curl -fsS --retry 10 --retry-connrefused --retry-delay 1 http://127.0.0.1:18080/)
  [ "$page" = "data of the site" ] || fail "the container serves: $page"
}
