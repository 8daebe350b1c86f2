"""The benchmark: Headrace, the raw SQL ceiling and other job systems on one server, in turns, in one run.

`headrace bench` runs it; `headrace bench --only drain --peers none --json` is the quickest useful call. Method, caveats
and the last results: `benchmarks/README.md` of the repository.

Which Headrace is measured: the one this process imports. Every child process (the raw loops, which read the shipped
statement files, the enqueueing clients and the workers) gets the same first entry of the module path, so another
checkout is measured by

    PYTHONPATH=/path/to/checkout/src python -m headrace bench --only drain --peers none --json

and the report names the folder under `versions.headrace_source`. `--source FOLDER` (repeatable) adds the worker of
another checkout's `src` as a further contender of the same run, `headrace@FOLDER`, in turns with the rest: the way to
compare two versions on a machine whose speed drifts.
"""
