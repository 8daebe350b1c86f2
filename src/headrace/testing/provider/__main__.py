"""The scripted provider as a process of its own: `python -m headrace.testing.provider --help`.

Prints one line of JSON (`base_url`, `api_key`, `model`, `pid`) once it listens, and runs until SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import cast

from headrace.event_loops import fastest_loop
from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.testing.provider import Answers, Fault, Latency, Quota, QuotaChange, ScriptedProvider
from headrace.testing.provider.replies import AnswerFunction


def main() -> int:
    """Serve as the command line says; 0 after a signal, 2 for a mistake in the arguments."""
    options = _parser().parse_args()
    try:
        provider = ScriptedProvider(
            faults=[Fault.parse(text) for text in options.fault],
            latency=Latency.parse(options.latency),
            rules=Answers.load(options.answers) if options.answers else Answers(),
            answer=_function(options.answer) if options.answer else None,
            log=options.log,
            api_key=options.api_key,
            model=options.model,
            context_tokens=options.context_tokens,
            quota=Quota.parse(",".join(options.quota)),
            quota_changes=[QuotaChange.parse(text) for text in options.quota_change],
            seed=options.seed,
            port=options.port,
        )
        with asyncio.Runner(loop_factory=fastest_loop()) as runner:
            runner.run(_serve(provider))
    except (HeadraceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 (the default) takes a free one")
    parser.add_argument("--log", type=Path, help="append every call to this JSON-lines file, forced to disk")
    parser.add_argument("--answers", type=Path, help="JSON file of answering rules")
    parser.add_argument("--answer", metavar="MODULE:FUNCTION", help="function that answers, before the rules do")
    parser.add_argument("--latency", default="0", help="FIRST_TOKEN_SECONDS[,TOKENS_PER_SECOND[,TOKENS_PER_EVENT]]")
    parser.add_argument("--fault", action="append", default=[], help="KIND[:name=value,…]; repeat for more")
    parser.add_argument("--quota", action="append", default=[], help="requests_per_minute=600,burst=10s,…")
    parser.add_argument(
        "--quota-change",
        action="append",
        default=[],
        metavar="WHEN:CHANGES",
        help="after=30s:name=value,… or after_calls=2000:name=value,…; repeat for more",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults' rates")
    parser.add_argument("--model", default="scripted-model")
    parser.add_argument("--context-tokens", type=int, help="refuse longer prompts")
    parser.add_argument("--api-key", default="scripted-key")
    return parser


def _function(name: str) -> AnswerFunction:
    """Return the function of this name. Raises InvalidInputError."""
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError("answer", f"must name a function as MODULE:FUNCTION ({error})", name) from None
    if not callable(found):
        raise InvalidInputError("answer", "must name a function as MODULE:FUNCTION", name)
    return cast("AnswerFunction", found)


async def _serve(provider: ScriptedProvider) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with provider:
        ready = {"base_url": provider.base_url, "api_key": provider.api_key, "model": provider.model}
        sys.stdout.write(json.dumps({**ready, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
