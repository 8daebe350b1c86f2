-- Gone, with whoever is still connected.
DROP DATABASE IF EXISTS "{name}" WITH (FORCE)
