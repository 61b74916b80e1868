# Digests of the values of Secrets, as "key<TAB>value" lines. Runs after api.sh.
# The values stay on the host, and in the shell: no process has one as an argument.
# Arguments: the path of each Secret. Parsed by deploys/parts/cluster/secrets_fact.py.
for path; do put asked "$path"; done
ask "$work/secrets" "$@"
# The server writes each value on a line of its own; = stands in no key.
awk -v mark="$mark" '
  NF == 2 && $2 == mark { print n + 0, "=", first == "{" ? $1 : "unreadable"
    n++; first = ""; next }
  first == "" { first = $0 }
  /^  "data": \{$/ { inside = 1; next }
  /^  \}/ { inside = 0 }
  inside { split($0, part, "\""); print n + 0, part[2], part[4] }' "$work/secrets" |
  while read -r number key value; do
    if [ "$key" = = ]; then put status "$number $value"
    else put digest "$number $key $(printf %s "$value" | base64 -d | sha256sum | cut -c 1-64)"
    fi
  done
put end ok
