"""The workflow of a report: six stages, of which those that ask the model run beside each other.

    ingest ─┬─ tagging ── stats ─┬─ render
            ├─ defects ──────────┤
            └─ clusters ─────────┘

Defects and clusters need the rows alone, so that the model is asked for modules, facts and summaries at the same time.
A question that failed for good is an entry of a map that failed: the report goes on without it, and a run that repeats
this one asks for it again, and for nothing else.
"""

from __future__ import annotations

from typing import Any

from headrace import Canvas, Workflow, chain, group, input_, map_, sub
from headrace.apps.report import stages
from headrace.apps.report.opening import app
from headrace.apps.report.tasks import clusters, content, defects, ingest, output, stats, tagging

WORKFLOW = "report"
#: Names of the maps whose entries each ask the model once.
CLASSIFY, CHORDS, EXTRACT, SUMMARIZE = "classify", "chords", "extract", "summarize"


def tagging_part() -> Canvas:
    """Rules first, then the model for what they could not tell."""
    ruled = tagging.module_tagging_rules.si(input_["job_id"], input_["cases_ref"], input_["rules"])
    one = tagging.classify_case_module.si(input_["job_id"], input_["payload_ref"])
    asked = map_(one, over=ruled.output["entries"], max_failed=None).options(name=CLASSIFY)
    collected = tagging.collect_module_results.si(input_["job_id"], ruled.output["stage"], asked.output)
    return chain(ruled, asked, collected)


def defects_part() -> Canvas:
    """A chord of one job per failed row; of many rows several chords, by module."""
    prepared = defects.prepare_fail_cases.si(input_["job_id"], input_["cases_ref"], input_["lang"])
    one = defects.extract_defect_fact.si(input_["job_id"], input_["payload_ref"])
    asked = map_(one, over=input_["entries"], max_failed=None).options(name=EXTRACT)
    chord = chain(asked, defects.collect_defect_facts.si(input_["job_id"], input_["work_ref"], asked.output))
    chords = map_(chord, over=prepared.output["chords"]).options(name=CHORDS)
    return chain(prepared, chords, defects.finalize_defect_facts.si(input_["job_id"], chords.output))


def clusters_part() -> Canvas:
    """Group by code; the model may merge and name."""
    grouped = clusters.cluster_defects.si(input_["job_id"], input_["cases_ref"], input_["previous_ref"], input_["lang"])
    merged = clusters.merge_clusters.si(input_["job_id"], grouped.output["cards_ref"]).options(on_error="continue")
    prepared = clusters.prepare_summaries.si(
        input_["job_id"], input_["cases_ref"], grouped.output, merged.output, input_["lang"]
    )
    one = clusters.summarize_cluster.si(input_["job_id"], input_["payload_ref"])
    asked = map_(one, over=prepared.output["entries"], max_failed=None).options(name=SUMMARIZE)
    ended = clusters.finalize_cluster_summaries.si(input_["job_id"], prepared.output["stage"], asked.output)
    return chain(grouped, merged, prepared, asked, ended)


def render_part() -> Canvas:
    """Words by the model, the document, its three forms, and the end."""
    words = content.compose_report_content.si(input_["job_id"], input_["given"], input_["lang"])
    composed = words.options(on_error="continue")
    document = output.assemble_report.si(input_["job_id"], input_["given"], composed.output, input_["facts"])
    page = output.render_html.si(input_["job_id"], document.output["document_ref"]).options(on_error="continue")
    book = output.export_excel.si(input_["job_id"], document.output["document_ref"]).options(on_error="continue")
    stored = output.store_artifacts.si(input_["job_id"], document.output, page.output, book.output)
    return chain(composed, document, group(page, book), stored, output.mark_job_done.s(input_["job_id"]))


@app.workflow(name=WORKFLOW, tags=("schedule:node_level",))
def report(job_id: str, source: dict[str, Any], options: dict[str, Any]) -> Canvas:
    """Return the graph. `options`: sheets, lang, title, rules, gate, previous."""
    read = ingest.ingest_and_normalize.s(job_id, source, options["sheets"], options["previous"])
    begun = read.options(name=stages.INGEST)
    cases, lang = begun.output["artifacts"]["normalized_cases_ref"], options["lang"]
    previous = begun.output["artifacts"]["previous_ref"]
    given = {"job_id": job_id, "cases_ref": cases, "lang": lang, "previous_ref": previous}
    tagged = sub(tagging_part(), start={**given, "rules": options["rules"]}).options(name=stages.TAGGING)
    found = sub(defects_part(), start=given).options(name=stages.DEFECTS)
    grouped = sub(clusters_part(), start=given).options(name=stages.CLUSTERS)
    counted = stats.compute_stats_and_charts.si(
        job_id, begun.output["artifacts"], tagged.output["artifacts"], options["gate"], lang
    ).options(name=stages.STATS)
    results = {
        stages.INGEST: begun.output, stages.TAGGING: tagged.output, stages.STATS: counted.output,
        stages.DEFECTS: found.output, stages.CLUSTERS: grouped.output,
    }  # fmt: skip
    facts = {"source": source, "title": options["title"], "lang": lang, "sheets": options["sheets"]}
    ended = {"job_id": job_id, "given": results, "lang": lang, "facts": facts}
    return sub(render_part(), start=ended).options(name=stages.RENDER)


__all__ = ["WORKFLOW", "Workflow", "report"]
