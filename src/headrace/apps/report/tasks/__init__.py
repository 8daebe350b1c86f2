"""The tasks of reports, a file per stage. Jobs carry the id of the report and references; what they refer to is on the
shelf."""
