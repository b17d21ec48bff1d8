# Sets up what Twinstudio needs and leaves VENV and ROOT set. To be sourced by run.sh and test.sh.
# A second call finds the stamp of the first and does nothing.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*" >&2; }
fail() { say "twinstudio set-up: $*"; exit 1; }

# The environment lies in the checkout; where that may not be written, in the user's cache.
if [ -w "$ROOT" ]; then
  VENV="$ROOT/.venv"
else
  VENV="${XDG_CACHE_HOME:-$HOME/.cache}/twinstudio/venv"
fi

APT_PACKAGES="libegl1 libgl1 libgl1-mesa-dri libglx-mesa0 libopengl0 libxkbcommon0 libxkbcommon-x11-0 libdbus-1-3 libfontconfig1 libglib2.0-0 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xkb1 fonts-dejavu-core"
NEEDED_LIBRARIES="libEGL.so.1 libGL.so.1 libOpenGL.so.0 libxkbcommon-x11.so.0 libdbus-1.so.3 libfontconfig.so.1 libxcb-cursor.so.0 libxcb-icccm.so.4 libxcb-image.so.0 libxcb-keysyms.so.1 libxcb-randr.so.0 libxcb-render-util.so.0 libxcb-shape.so.0 libxcb-xkb.so.1"

missing_libraries() {
  local known library
  known=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null) || return 0
  for library in $NEEDED_LIBRARIES; do
    case "$known" in *"$library "*) ;; *) printf '%s ' "$library" ;; esac
  done
  [ "${1:-}" = with-xvfb ] && ! command -v Xvfb >/dev/null && printf 'Xvfb '
  return 0
}

# system_libraries [with-xvfb]: installs through apt where it may; 1 when something is still missing.
system_libraries() {
  local missing packages="$APT_PACKAGES"
  missing=$(missing_libraries "${1:-}")
  [ -z "$missing" ] && return 0
  [ "${1:-}" = with-xvfb ] && packages="$packages xvfb"
  local install="apt-get install -y --no-install-recommends $packages"
  if ! command -v apt-get >/dev/null; then
    say "These system libraries are missing: $missing"
    say "Install your system's packages for Qt 6 (xcb platform), OpenGL and Xvfb."
    return 1
  fi
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root="sudo -n"
    else
      say "These system libraries are missing: $missing"
      say "Install them with:"
      say "  sudo apt-get update && sudo $install"
      return 1
    fi
  fi
  say "Installing system libraries: $missing"
  # shellcheck disable=SC2086
  $as_root apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive $as_root $install -qq >&2 ||
    { say "apt could not install them; try: sudo $install"; return 1; }
}

is_version() { "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != ($2))" 2>/dev/null; }

find_python() { # find_python "3, 11" names...
  local version=$1 name
  shift
  for name in "$@"; do
    if command -v "$name" >/dev/null && is_version "$name" "$version"; then
      command -v "$name"
      return 0
    fi
  done
  return 1
}

make_venv() {
  local python uv
  if python=$(find_python "3, 11" python3.11 python3 python); then
    "$python" -m venv "$VENV"
    return
  fi
  uv=$(command -v uv || true)
  if [ -z "$uv" ] && command -v python3 >/dev/null && python3 -m venv "$VENV.uv" 2>/dev/null; then
    "$VENV.uv/bin/pip" install -q uv 2>/dev/null && uv="$VENV.uv/bin/uv"
  fi
  if [ -n "$uv" ] && "$uv" venv -q --seed --python 3.11 "$VENV" 2>/dev/null; then
    rm -rf "$VENV.uv"
    return
  fi
  rm -rf "$VENV.uv"
  if python=$(find_python "3, 12" python3.12 python3) || python=$(find_python "3, 13" python3.13 python3); then
    say "No Python 3.11 found, so PyBullet has no ready-made wheel: it is built from source,"
    say "which takes some minutes and needs a C++ compiler."
    "$python" -m venv "$VENV"
    return
  fi
  fail "Python 3.11 (or 3.12, 3.13) with venv is needed, and uv could not fetch one; install it, e.g. 'apt-get install python3.11 python3.11-venv', and start again"
}

python_packages() {
  local stamp="$VENV/.twinstudio-stamp" wanted
  wanted=$(cat "$ROOT/pyproject.toml" "$ROOT/packaging/constraints.txt" "$ROOT"/plugins/*/pyproject.toml 2>/dev/null | cksum; printf '%s' "$ROOT")
  [ -x "$VENV/bin/twinstudio" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  say "Setting up Python packages in $VENV (once; a minute or two)"
  # The scripts in an environment name its folder; in a checkout that was moved it is made anew.
  if [ "$VENV" = "$ROOT/.venv" ] && [ -e "$stamp" ] && [ "$(tail -n 1 "$stamp")" != "$ROOT" ]; then
    rm -rf "$VENV"
  fi
  if ! [ -x "$VENV/bin/pip" ]; then
    mkdir -p "$(dirname "$VENV")"
    make_venv
  fi
  "$VENV/bin/pip" install -q --disable-pip-version-check -c "$ROOT/packaging/constraints.txt" \
    -e "$ROOT[test]" >&2 || fail "the Python packages could not be installed; is a package index reachable?"
  local part
  for part in "$ROOT"/plugins/twinstudio-*/; do
    "$VENV/bin/pip" install -q --disable-pip-version-check --no-build-isolation \
      -c "$ROOT/packaging/constraints.txt" -e "$part" >&2 || fail "the plugins in $part could not be installed"
  done
  printf '%s' "$wanted" >"$stamp"
}
