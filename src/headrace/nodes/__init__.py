"""Node types of JSON flows, one per file, on ports alone; `registry` knows them and those of other packages."""
