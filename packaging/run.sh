#!/usr/bin/env bash
# Sets up what is missing and starts the main job: the window on the demo scene with its emulated
# cell; without a display, the same headless for 20 s, ending in a gap table and an HTML report.
# Arguments go to twinstudio, e.g. `bash packaging/run.sh gap LOG.mcap --scene panda_cell`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

python_packages
if [ $# -gt 0 ]; then
  exec "$VENV/bin/twinstudio" "$@"
fi
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && system_libraries; then
  exec "$VENV/bin/twinstudio" demo
fi
say "No window: the demo runs headless for 20 s, then prints the gap and where its report is."
exec "$VENV/bin/twinstudio" demo --headless --seconds 20
