# cloud-init as a provider's image has it, but for the modules that would make the lab's users and
# SSH keys anew: at each boot it writes /etc/hosts from its template.
template=/etc/cloud/templates/hosts.debian.tmpl

wear() {
  install cloud-init
  cat > /etc/cloud/cloud.cfg.d/99-site.cfg <<'END'
datasource_list: [NoCloud]
manage_etc_hosts: true
network: {config: disabled}
cloud_init_modules: [update_hostname, update_etc_hosts]
cloud_config_modules: []
cloud_final_modules: []
END
  mkdir -p /var/lib/cloud/seed/nocloud
  printf 'instance-id: i-lab\nlocal-hostname: %s\n' "$(hostname)" > /var/lib/cloud/seed/nocloud/meta-data
  echo '#cloud-config' > /var/lib/cloud/seed/nocloud/user-data
  # a site that has its names in no DNS has them in the template
  printf '%s %s\n' "$host" "${mirror#https://}" >> $template
  # as its units do at boot
  cloud-init init --local >/dev/null 2>&1
  cloud-init init >/dev/null 2>&1
  cloud-init modules --mode=config >/dev/null 2>&1
  cloud-init modules --mode=final >/dev/null 2>&1
  works
}

works() {
  has /etc/hosts "manage_etc_hosts"
  has /etc/hosts "$host ${mirror#https://}"
  has /etc/hosts "127.0.1.1"
  [ -e /run/cloud-init/instance-data.json ] || fail "cloud-init did not run at this boot"
}
