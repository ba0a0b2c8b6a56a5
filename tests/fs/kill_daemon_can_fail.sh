#!/bin/sh
# That kill_daemon.py turns red when something is wrong: a short good run, and one of each kind of sabotage.
exec /usr/bin/python3 "$(dirname "$0")/kill_daemon.py" --self-test
