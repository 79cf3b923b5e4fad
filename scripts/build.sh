# shellcheck shell=bash
# What scripts/forge, scripts/test and scripts/bench share: installing what is missing and building.
# Sourced, not run, by scripts with `set -euo pipefail`.

root=$(readlink -f "${BASH_SOURCE[0]}")
root=${root%/scripts/build.sh}

# A LibTorch of one's own is remembered with the build, so that it is named only once. Empty means
# Debian's; FORGE_TORCH= (set and empty) goes back to that.
remember_torch() {
  local remembered="$root/build/release/.torch"
  if [ -z "${FORGE_TORCH+set}" ] && [ -r "$remembered" ]; then
    FORGE_TORCH=$(<"$remembered")
  fi
  export FORGE_TORCH="${FORGE_TORCH:-}"
}

# say TEXT: one line of chatter; stdout belongs to results.
say() { printf 'forge: %s\n' "$1" >&2; }

# install_missing [--tests | --fuzz]: runs scripts/setup unless this very script has succeeded here before.
install_missing() {
  local done_file="$root/build/release/.setup-ok" key
  key="$(cksum <"$root/scripts/setup") torch=${FORGE_TORCH:+own}"
  # What the tests need includes what the products need.
  if [ -r "$done_file" ] && grep -qxF -e "$key ${1:-}" -e "$key ${1:---tests}" "$done_file"; then return; fi
  "$root/scripts/setup" "$@"
  mkdir -p "$(dirname "$done_file")"
  printf '%s\n' "$key ${1:-}" >>"$done_file"
}

# As many compilers as cores, but no more than memory holds: a compiler takes up to 1.4 GB.
# FORGE_JOBS sets another number.
compile_jobs() {
  local cores kilobytes jobs
  if [ -n "${FORGE_JOBS:-}" ]; then echo "$FORGE_JOBS"; return; fi
  cores=$(nproc)
  kilobytes=$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)
  jobs=$((${kilobytes:-2000000} / 1400000))
  if [ "$jobs" -lt 1 ]; then jobs=1; fi
  if [ "$jobs" -gt "$cores" ]; then jobs=$cores; fi
  echo "$jobs"
}

# configure PRESET [ARGUMENT…]: configures where that has not been done or would come out otherwise.
configure() {
  local preset=$1 folder="$root/build/release" fresh=()
  shift
  if [ "$FORGE_TORCH" != "$(cat "$folder/.torch" 2>/dev/null)" ]; then fresh=(--fresh); fi
  if [ -n "$FORGE_TORCH" ]; then set -- "-DCMAKE_PREFIX_PATH=$FORGE_TORCH" "$@"; fi
  # A build that was configured by hand is taken as it is.
  if [ -f "$folder/build.ninja" ] && [ ${#fresh[@]} -eq 0 ] && [ "$preset" = release ]; then return; fi
  (cd "$root" && cmake "${fresh[@]}" --preset "$preset" "$@") || return
  printf '%s' "$FORGE_TORCH" >"$folder/.torch"
}

# follow: copies ninja's output to the log; where stderr is a terminal shows how far it is.
follow() {
  if [ ! -t 2 ]; then cat >>"$1"; return; fi
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    case $line in \[*/*\]*) printf '\r\033[Kforge: building %s' "${line%%]*}]" >&2 ;; esac
  done
  printf '\r\033[K' >&2
}

# build PRESET TARGET…: configures and builds. On failure shows the end of the log and returns 1.
# Arguments that begin with -D go to the configuration.
build() {
  local preset=$1 folder="$root/build/release" log target targets=() settings=()
  shift
  log="$folder/build.log"
  for target in "$@"; do
    case $target in -D*) settings+=("$target") ;; *) targets+=("$target") ;; esac
  done
  mkdir -p "$folder"
  : >"$log"
  if configure "$preset" "${settings[@]}" >>"$log" 2>&1 &&
    without_torch "$folder" "${targets[@]}" &&
    cmake --build "$folder" -j "$(compile_jobs)" --target "${targets[@]}" 2>&1 | follow "$log"; then
    return 0
  fi
  # Perhaps a package was removed since scripts/setup last looked.
  rm -f "$root/build/release/.setup-ok"
  echo >&2
  tail -n 40 "$log" >&2
  say "the build failed; all of it: $log"
  return 1
}

# without_torch FOLDER TARGET…: sets `targets` to those that a build configured with
# FORGE_WITH_TORCH=OFF has.
without_torch() {
  local folder=$1 target
  shift
  targets=()
  for target in "$@"; do
    if [[ $target == *worker* ]] && grep -q '^FORGE_WITH_TORCH:BOOL=OFF' "$folder/CMakeCache.txt"; then
      continue
    fi
    targets+=("$target")
  done
}

# One build at a time in a checkout: lock_build waits for another one.
lock_build() {
  mkdir -p "$root/build/release"
  exec {build_lock}>"$root/build/release/.lock"
  if flock -n "$build_lock"; then return; fi
  say "waiting for another build of this checkout…"
  flock "$build_lock"
}
unlock_build() { exec {build_lock}>&-; }
