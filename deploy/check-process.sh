#!/bin/sh
# Whether the process of this container is well: exit code 0, or 1 and why.
#
#   check-process service        the service answers here, on port 8400 or $PORT
#   check-process worker         a worker of this host has a live session in the store
#   check-process worker-alive   the same, but while the store does not answer nobody is to blame: for liveness probes
#   check-process store          the store can be reached and has its schema: for the relay, which has no session
#
# A worker outlives an outage of its store, so that must never be a reason to end it.
case "$1" in
service)
    exec python -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=4)' \
        "http://127.0.0.1:${PORT:-8400}/healthz"
    ;;
worker | worker-alive)
    sessions=$(headrace workers --json)
    code=$?
    if [ "$code" -eq 3 ] && [ "$1" = worker-alive ]; then
        exit 0
    fi
    [ "$code" -eq 0 ] || exit 1
    if printf '%s' "$sessions" | grep -qF "\"hostname\": \"$(hostname)\""; then
        exit 0
    fi
    echo "no worker of $(hostname) has a live session" >&2
    exit 1
    ;;
store)
    headrace queue stats --json > /dev/null || exit 1
    ;;
*)
    echo "usage: check-process service|worker|worker-alive|store" >&2
    exit 1
    ;;
esac
