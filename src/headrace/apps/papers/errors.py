"""What a user can do wrong with papers. A class's docstring is its default message.

HeadraceError
├── ConfigError                  exit code 2
│   ├── TemplateError            the template file breaks a rule (file, path, rule, value, fix)
│   ├── NoDocumentsError         nothing to extract from
│   ├── FolderError              the folder cannot be listed
│   ├── DualError                the second of two extractions cannot be asked
│   ├── GoldError                the sheet of known values breaks a rule (file, line, column, rule, value)
│   ├── OutputError              the results cannot be written where they should
│   └── ReaderPluginError        an installed document reader cannot be used
└── MissingSourceError           a worker does not find what the command noted for it
"""

from __future__ import annotations

from headrace import ConfigError, HeadraceError


class TemplateError(ConfigError):
    """The template cannot be used. Correct the named key in the template file and start again."""

    code = "invalid_template"


class NoDocumentsError(ConfigError):
    """No documents selected"""

    code = "no_documents"


class FolderError(ConfigError):
    """The folder of documents cannot be listed. Name a folder that exists and that you may read."""

    code = "invalid_input"


class DualError(ConfigError):
    """The second extraction cannot be asked. Name `prompts` or a configured model with --dual."""

    code = "invalid_input"


class GoldError(ConfigError):
    """The sheet of known values cannot be used. Correct the named line of the file given with --gold."""

    code = "invalid_input"


class OutputError(ConfigError):
    """The results cannot be written there. Name a folder that you may write with --out."""

    code = "invalid_input"


class ReaderPluginError(ConfigError):
    """An installed document reader cannot be used. Remove its package, or install a version that works."""

    code = "config"


class MissingSourceError(HeadraceError):
    """The run's files are not on this machine. Run workers of papers where the command was started."""

    code = "missing_source"
    # Another worker may have them.
    transient = True
