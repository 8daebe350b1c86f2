"""Invented towns for each region of a map: streamed, valid, each name once, within a budget. See README.md."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from pydantic import BaseModel, Field

from headrace import App, Backoff, Context

REGIONS = ["north", "coast", "hills", "marsh", "plain", "islands"]
TOWNS = 5
CLIENT = "tenant:atlas"

app = App()


class Town(BaseModel):
    """What the model is asked for."""

    name: str = Field(min_length=3, description="an invented name")
    people: int = Field(ge=0, description="how many live there")


class Named(BaseModel):
    """A town whose name nobody else has, and how it came about: `llm`, `repaired`, `reasked`, `escalated`, …"""

    town: Town
    provenance: str


class Region(BaseModel):
    """What a job ends with."""

    region: str
    towns: list[Named]
    duplicates: list[str]
    missing: int


# With `pools` its jobs do not start while the quota has nothing to give.
@app.task(queue="towns", pools=["small"], retry=Backoff.exponential(max_attempts=4, cap="30s"))
async def settle(region: str, ctx: Context) -> Region:
    """Invent the towns of one region."""
    llm = app.llm.using(tenant="atlas")

    async def ask(number: int, avoid: list[str]) -> list[Named]:
        prompt = f"Invent {number} towns of the {region}." + (f" Not: {', '.join(avoid)}." if avoid else "")
        named = []
        # Each town comes the moment it is written; one that is not valid comes once more, when it was asked again.
        async with aclosing(llm.stream_items(Town, prompt=prompt, expected=number, max_tokens=300)) as items:
            async for item in items:
                if item.is_final and item.value is not None:
                    named.append(Named(town=item.value, provenance=str(item.provenance)))
                    ctx.progress(f"{region}: {item.value.name}")
        return named

    # The job is the owner: run again after a crash it asks the same, pays nothing, and gets the same names.
    found = await app.names("atlas: towns").collect_unique(
        TOWNS, ask, owner=ctx.job_id, rounds=4, over_ask=0, name_of=lambda named: named.town.name
    )
    duplicates = [each.name for each in found.rejected]
    return Region(region=region, towns=list(found.items), duplicates=duplicates, missing=found.shortfall)


async def main() -> None:
    """Submit a job for each region, work them here, and print what comes."""
    async with app.worker(concurrency=2):
        [budget] = await app.budgets.show([CLIENT])
        if budget.budget is None:
            await app.budgets.set(CLIENT, dollars="0.003")
        batch = await app.submit(settle, REGIONS, key="atlas")
        async for item in batch.results():
            if item.result is None:
                print(f"{REGIONS[item.index]}: {item.status}, {item.error}", flush=True)
                continue
            region: Region = item.result
            towns = ", ".join(f"{each.town.name} ({each.provenance})" for each in region.towns)
            print(f"{region.region}: {towns}", flush=True)
            for duplicate in region.duplicates:
                print(f"  not given twice: {duplicate}", flush=True)
        [budget] = await app.budgets.show([CLIENT])
        print(f"spent: {budget.cost_nano / 1e9:.6f} dollars, {budget.tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
