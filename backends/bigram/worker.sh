#!/bin/sh
# A worker of forge in shell and awk: says hello, takes one request line from stdin, and lets
# bigram.awk do it. docs/PROTOCOL.md describes what is read and written.
#
# awk knows no signals: SIGTERM and SIGUSR1 become files that it looks for after each step.
export LC_ALL=C
here=$(dirname "$0")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap ': > "$scratch/stop"' TERM
trap ': > "$scratch/save"' USR1
printf '{"event":"hello","protocol":1,"backend":"bigram","backend_version":"1.0","numerics_version":1,"saves_on_request":true}\n'
head -n 1 > "$scratch/request"
processor=$(sed -n 's/^model name[^:]*: *//p;' /proc/cpuinfo | head -n 1)
memory=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)

awk -f "$here/json.awk" -f "$here/bigram.awk" -v request="$scratch/request" \
  -v stop="$scratch/stop" -v save_now="$scratch/save" -v processor="${processor:-$(uname -m)}" -v memory="${memory:-0}" < /dev/null &
worker=$!
# A signal ends `wait` early; while the process is there, it has not been waited for.
while :; do
  wait "$worker"
  status=$?
  kill -0 "$worker" 2> /dev/null || break
done
exit "$status"
