#!/bin/bash
# What `make demo` shows is so.
if shown=$("$(dirname "$0")/../../docs/demo.sh" 2>&1); then
    echo "ok 1 - the demonstration runs to its end"
else
    echo "not ok 1 - the demonstration runs to its end"
    echo "# ${shown//$'\n'/$'\n'# }"
    exit 1
fi
