"""`headrace doctor`: check what Headrace rests on, and say what to do."""

from __future__ import annotations

import asyncio

import click

from headrace.cli.checks import examine
from headrace.cli.exits import Exit, exit_code
from headrace.cli.finding import Finding, Status
from headrace.cli.output import cell, console, json_option, print_json
from headrace.cli.plain import plain
from headrace.settings import Settings, load_settings


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check the store, the workers and the model, and say what to do.

    Each line is ok, warn or fail with its fix. Ends with 1 when something fails, with 3 when the store cannot be
    reached, with 4 when it refuses this user. The embedded PostgreSQL is started for it.

    \b
    Examples:
      headrace doctor
      headrace --url postgresql://app@db/app doctor --json
    """
    findings = asyncio.run(_collect(load_settings(), as_json=as_json))
    if as_json:
        healthy = all(finding.status is not Status.FAIL for finding in findings)
        print_json({"ok": healthy, "checks": [_document(finding) for finding in findings]})
    return _exit_code(findings)


async def _collect(settings: Settings, *, as_json: bool) -> list[Finding]:
    findings = []
    async for finding in examine(settings):
        findings.append(finding)
        if not as_json:
            _print(finding)
    return findings


def _exit_code(findings: list[Finding]) -> Exit:
    unusable = next((finding.error for finding in findings if finding.error is not None), None)
    if unusable is not None:
        return exit_code(unusable)
    return Exit.FAILED if any(finding.status is Status.FAIL for finding in findings) else Exit.OK


def _document(finding: Finding) -> dict[str, str | None]:
    return {"check": finding.check, "status": finding.status, "message": finding.message, "fix": finding.fix}


def _print(finding: Finding) -> None:
    out = console()
    line = cell(finding.status)
    line.append(f"{'':{6 - len(finding.status)}}{finding.check:12}{plain(finding.message)}", style="not bold default")
    out.print(line)
    if finding.fix is not None:
        out.print(f"{'':18}fix: {plain(finding.fix)}", style="dim")
