"""What a user can do wrong with reports. A class's docstring is its default message.

HeadraceError
├── ConflictError                HTTP 409
│   ├── NameTakenError           another file was sent under that name (name_taken)
│   └── NotEndedError            the report has not ended, or has failed (not_ended)
└── ConfigError                  exit code 2, HTTP 422
    ├── UnsafeFileError          the file could harm who opens it (unsafe_archive)
    ├── UnreadableFileError      it is no file of test cases (unreadable_file)
    │   └── FileTypeError        its content is not what its name says (wrong_file_type, HTTP 415)
    ├── NoCasesError             there are no test cases in it (no_cases)
    ├── RulesError               the rules of modules break a rule (invalid_rules)
    ├── PreviousReportError      what --previous names is no report (invalid_previous)
    └── OutputError              the report cannot be written where it should (invalid_input)
"""

from __future__ import annotations

from headrace import ConfigError, ConflictError


class NameTakenError(ConflictError):
    """Another file has this name. Send this one under another name."""

    code = "name_taken"


class NotEndedError(ConflictError):
    """The report has not ended, or has failed. Wait for it, or resume it."""

    code = "not_ended"


class UnsafeFileError(ConfigError):
    """The file could harm who opens it. Save it anew as XLSX, without macros, links and passwords."""

    code = "unsafe_archive"


class UnreadableFileError(ConfigError):
    """The file cannot be read as test cases. Give an .xlsx, .xls, .ods, .csv or JUnit .xml file."""

    code = "unreadable_file"


class FileTypeError(UnreadableFileError):
    """The content is of another kind than the name says. Give an .xlsx, .xls, .ods, .csv or JUnit .xml file."""

    code = "wrong_file_type"


class NoCasesError(ConfigError):
    """No test cases were found. Name a sheet whose header has a case id, a title or a result."""

    code = "no_cases"


class RulesError(ConfigError):
    """The rules of modules cannot be used. Correct the named key of the file and start again."""

    code = "invalid_rules"


class PreviousReportError(ConfigError):
    """That is no report. Give the report.json that an earlier report wrote."""

    code = "invalid_previous"


class OutputError(ConfigError):
    """The report cannot be written there. Name a folder that you may write with --out."""

    code = "invalid_input"


#: What may be wrong with the file, by code: a report that failed of it is begun anew, with another file.
INPUT_ERRORS = {kind.code: kind for kind in (UnsafeFileError, UnreadableFileError, FileTypeError, NoCasesError)}
