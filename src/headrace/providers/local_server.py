"""The local model's server: a process of its own that runs this file alone, on loopback, until SIGTERM.

Arguments: port, weights, file of the API key. It imports nothing of Headrace, so that it stays small.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

_SLOTS = 4
_TOKENS_PER_SLOT = 4096
_MOST_THREADS = 4
#: Prompts of slots that another prompt took over are kept here: many documents take turns on few slots.
_PROMPT_CACHE_MIB = 256
_WARNINGS = 2


def main(port: str, weights: str, key_file: str) -> None:
    """Serve until SIGTERM or SIGINT."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.n_ctx, parameters.n_parallel = _SLOTS * _TOKENS_PER_SLOT, _SLOTS
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        # The threads wait for one another at every step: on cores that the workers use too, fewer are faster.
        threads.n_threads = max(1, min(_MOST_THREADS, _cores() // 2))
        threads.poll = 0  # and none spins while it waits
    parameters.cache_ram_mib = _PROMPT_CACHE_MIB
    parameters.hostnames, parameters.port = ["127.0.0.1"], int(port)
    parameters.api_keys = [Path(key_file).read_text(encoding="ascii").strip()]
    parameters.cors_origins = ""
    parameters.ui = False
    parameters.offline = True
    parameters.verbosity = _WARNINGS  # at the usual level the log holds prompts
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server
    os._exit(0)  # nothing to save, and its threads need not wind down


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main(*sys.argv[1:])
