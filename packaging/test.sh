#!/usr/bin/env bash
# Sets up what is missing and runs every check: style, types, layers, the core's tests with Qt
# blocked, then the window's tests under a virtual display. Arguments go to both pytest calls.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

python_packages
system_libraries with-xvfb || fail "the window's tests need these libraries"
cd "$ROOT"
export PYTHONDONTWRITEBYTECODE=1
# As in jobs: the matrices of the fits are small, and threads would mostly wait for each other.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# A check that fails does not keep the others from running; the last lines name all that failed.
failed=()
check() { # check NAME COMMAND...
  local name=$1
  shift
  "$@" || failed+=("$name")
}

check style "$VENV/bin/ruff" check .
check format "$VENV/bin/ruff" format --check .
check types "$VENV/bin/mypy"
check layers "$VENV/bin/lint-imports"
TWINSTUDIO_BLOCK_QT=1 check core \
  "$VENV/bin/python" -m pytest -p no:pytest-qt --ignore=tests/gui "$@"

# Xvfb picks a free display and says which on descriptor 3; it ends with this script.
display=$(mktemp)
Xvfb -displayfd 3 -screen 0 1366x768x24 +extension GLX -nolisten tcp 3>"$display" 2>/dev/null &
xvfb=$!
trap 'kill "$xvfb" 2>/dev/null; rm -f "$display"' EXIT
for _ in $(seq 100); do
  [ -s "$display" ] && break
  kill -0 "$xvfb" 2>/dev/null || fail "Xvfb did not start"
  sleep 0.1
done
DISPLAY=":$(cat "$display")" QT_QPA_PLATFORM=xcb check window \
  "$VENV/bin/python" -m pytest tests/gui "$@"

if [ ${#failed[@]} != 0 ]; then
  say "Failed: ${failed[*]}"
  exit 1
fi
say "Everything passed: style, format, types, layers, core, window."
