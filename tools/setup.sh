#!/bin/sh
# Finds a Python that can run Headrace and hands over to setup_venv.py.
# usage: tools/setup.sh runtime|dev|bench|prefect|site     ($PYTHON names the interpreter to take)
set -eu

venv=.venv
candidates="python3 python3.13 python3.12 python3.11 python"
if [ "$1" = bench ]; then
    venv=.venv-bench
    candidates="python3.13 python3.12 $candidates" # one of the systems measured needs 3.12
elif [ "$1" = prefect ] || [ "$1" = site ]; then
    venv=.venv-$1
fi

usable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, '"$2"'))' >/dev/null 2>&1 &&
        "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

unset PYTHONHOME PYTHONPATH # another program's modules would be mixed into ours

# The usual case, kept quick: nothing changed. An environment of another Python than the one asked for is not that case.
if [ -z "${PYTHON:-}" ] && [ -x $venv/bin/python ] && $venv/bin/python -I tools/setup_venv.py "$1" --is-fresh; then
    exit 0
fi
if [ -n "${PYTHON:-}" ]; then
    usable "$PYTHON" 99 && exec "$PYTHON" tools/setup_venv.py "$1"
    echo "PYTHON=$PYTHON is not a Python 3.11 or newer with the venv and ensurepip modules." >&2
    exit 1
fi
# First the versions the tests cover, then whatever is newer.
for newest in 13 99; do
    for candidate in $candidates; do
        if usable "$candidate" "$newest"; then
            exec "$candidate" tools/setup_venv.py "$1"
        fi
    done
done
echo "Headrace needs Python 3.11 or newer with the venv and ensurepip modules; none was found on the PATH." >&2
echo "python3 is: $(python3 --version 2>&1 || true)" >&2
echo "Install one (Debian and Ubuntu: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3.12" >&2
exit 1
