# The rules by which this host drops packets, as "key<TAB>value" lines.
# packet_filter. Parsed by gpuboot/hosts/packet_filter.py. POSIX sh, changes nothing (iptables-legacy would
# load its tables, so it is asked only where they are loaded); defines functions.
# Left out is what kube-proxy and flannel write: it drops nothing of what is asked, and is long.
packet_filter() {
  if command -v nft >/dev/null 2>&1; then
    tables=$(nft list tables 2>/dev/null)
  elif command -v iptables-nft-save >/dev/null 2>&1; then # ufw needs iptables alone
    tables='table ip filter, table ip6 filter'
  else
    tables=
  fi
  for six in '' 6; do
    if grep -qsx filter "/proc/net/ip${six}_tables_names"; then
      save=ip${six}tables-legacy-save
      command -v "$save" >/dev/null 2>&1 || save=ip${six}tables-save
      packet_filter_iptables "ip$six iptables-legacy" "$("$save" -t filter 2>/dev/null)" ||
        printf 'filter_unread\tip%stables-legacy\n' "$six"
    fi
    case "$tables" in *"table ip$six filter"*) ;; *) continue ;; esac
    save=ip${six}tables-nft-save
    command -v "$save" >/dev/null 2>&1 || save=ip${six}tables-save
    # a table of this name that nft itself made may have chains that iptables does not show
    own=$(nft list table "ip$six" filter 2>/dev/null | awk '
      $1 == "chain" { name = $2 } / hook / && name !~ /^(INPUT|FORWARD|OUTPUT)$/ { print name }')
    if [ -n "$own" ] ||
       ! packet_filter_iptables "ip$six iptables" "$("$save" -t filter 2>/dev/null)"; then
      packet_filter_nft "ip$six" filter
    fi
  done
  printf '%s\n' "$tables" | while read -r _ family name; do
    case "$family $name" in
      *' kube-proxy' | *' flannel-ipv4' | *' flannel-ipv6' | 'ip nat' | 'ip6 nat') continue ;;
      'ip filter' | 'ip6 filter') continue ;;
      ip' '* | ip6' '* | inet' '*) packet_filter_nft "$family" "$name" ;;
    esac
  done
}
# of a long set only what lies in private networks, where nodes and pods are: block lists are long
packet_filter_private='(^|[ {])(10\.|192\.168\.|172\.(1[6-9]|2[0-9]|3[01])\.|100\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\.|f[cd][0-9a-f]*:|[0-9a-f.:]*/[0-9]( |$))'
packet_filter_iptables() { # FAMILY PROGRAM, what iptables-save printed
  case "$2" in *'*filter'*) ;; *) return 1 ;; esac
  printf '%s\n' "$2" | sed -n 's/.*--match-set \([^ ]*\) .*/\1/p' | sort -u | while IFS= read -r set; do
    ipset save "$set" 2>/dev/null | awk -v name="$set" -v private="$packet_filter_private" '
      $1 == "create" { print "filter_set\t" name }
      $1 == "add" && (++n <= 100 || $3 ~ private) { print "filter_set\t" name " " $3 }
      END { if (n > 100) print "filter_set\t" name " public" }'
  done
  printf '%s\n' "$2" |
    awk -v of="$1" '/^:/ || /^-A/ { if ($0 !~ /^-A KUBE-/) print "filter_rule\t" of " " $0 }'
}
packet_filter_nft() { # FAMILY NAME
  nft list table "$1" "$2" 2>/dev/null | awk -v private="$packet_filter_private" '
    /elements = \{/ { first = NR }
    !first || NR < first + 50 { print "filter_rule\tnft " $0; if (/\}/) first = 0; next }
    { last = /\}/; sub(/\}.*/, ""); n = split($0, element, ",")
      for (i = 1; i <= n; i++) { sub(/^[ \t]+/, "", element[i])
        if (element[i] ~ private) print "filter_rule\tnft " element[i] "," }
      if (last) { print "filter_rule\tnft public }"; first = 0 } }'
}
