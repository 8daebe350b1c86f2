"""Templates: what ships is valid, what is wrong is named with its line and its fix."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace.apps.papers as papers
from headrace.apps.papers.errors import TemplateError
from headrace.apps.papers.template import Template, load_template, parse_template

SHIPPED = sorted(Path(papers.__path__[0]).rglob("*.yaml"))
HEAD = "name: t\nversion: 1\nfields:\n"
FIELD = "{name: a, type: text, description: d}"
ROWS = HEAD + "  - " + FIELD + "\nrows:\n"
GOOD = HEAD + "  - {name: size, type: integer, description: How many}\n"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_templates_are_valid(path: Path) -> None:
    """Every template in the package loads and has fields of more than one type."""
    template = load_template(path)
    assert len({field.type for field in template.fields}) > 1


def test_two_domains_ship() -> None:
    """There are at least two examples from different domains."""
    assert len({load_template(path).domain for path in SHIPPED} - {None}) >= 2


def test_the_digest_ignores_layout_and_comments() -> None:
    """The same template written otherwise has the same digest; another description has another."""
    spaced = "# a comment\n" + GOOD.replace("{name: size, type: integer", "{type:   integer, name: size")
    assert parse_template(spaced).digest == parse_template(GOOD).digest
    assert parse_template(GOOD.replace("How many", "How few")).digest != parse_template(GOOD).digest


def test_a_template_survives_json() -> None:
    """A template stored as JSON and read again is the same template."""
    template = load_template(SHIPPED[0])
    assert Template.model_validate_json(template.model_dump_json()) == template


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name: t\nversion: 1\nfeilds: []\n", ["line 3", "feilds", "did you mean 'fields'"]),
        (HEAD + "  - name: a\n    type: txt\n    description: d\n", ["line 5", "fields[0].type", "'text'", "'txt'"]),
        (
            HEAD + "  - {name: a, typ: text, description: d}\n",
            ["fields[0].typ", "did you mean 'type'", "type is missing"],
        ),
        (HEAD + "  - {name: A b, type: text, description: d}\n", ["fields[0].name", "sample_size", "'A b'"]),
        (HEAD + "  - {name: a, type: enum, enum: [yes, no], description: d}\n", ["enum[0]", "quotes", "True"]),
        (HEAD + "  - {name: a, type: enum, enum: [x, X], description: d}\n", ["two different values"]),
        (HEAD + "  - {name: a, type: text, enum: [x, y], description: d}\n", ["enum belongs", "type is text"]),
        (HEAD + "  - {name: a, type: text, unit: m, description: d}\n", ["unit belongs to numbers"]),
        (HEAD + "  - {name: a, type: text, description: ' '}\n", ["description", "must not be blank"]),
        (HEAD + 2 * "  - {name: a, type: text, description: d}\n", ["different names", "'a' occurs twice"]),
        ("name: t\nversion: 1.2\nfields: []\n", ["line 2", 'such as "1.2"', "got 1.2", "at least 1"]),
        ("name: t\nversion: 1\n", ["fields is missing"]),
        (ROWS + "  - {nme: arm, description: d, fields: []}\n", ["rows[0].nme", "(name, description, fields, key)"]),
        (
            ROWS + "  - {name: arm, description: d, fields: [{nam: a}]}\n",
            ["rows[0].fields[0].nam", "did you mean 'name'"],
        ),
        (ROWS + "  - {name: A, description: d, fields: []}\n", ["rows[0].name", "sample_size", "at least 1 entry"]),
        (ROWS + "  - {name: a, description: d, fields: [" + FIELD + "]}\n", ["fields and groups", "'a' occurs twice"]),
        (ROWS + "  - {name: b, description: d, key: x, fields: [" + FIELD + "]}\n", ["rows[0] key", "(a), got 'x'"]),
        (ROWS + "  - {name: b, description: ' ', fields: [" + FIELD + "]}\n", ["rows[0].description", "not be blank"]),
        (ROWS + "  - {name: b, description: d, fields: [" + 60 * (FIELD + ", ") + "]}\n", ["'a' occurs twice"]),
        (HEAD + "  - {name: a, type: text, description: d, section: ' '}\n", ["fields[0].section[0]", "not be blank"]),
        ("name: t\nversion: 1\nname: u\n", ["line 3", "'name' occurs twice"]),
        ("name: &x t\nversion: *x\n", ["line 2", "aliases"]),
        ("- a\n", ["must be a mapping"]),
        ("", ["must be a mapping"]),
        ("a: [", ["not valid YAML", "line 1"]),
        ("[" * 10_000, ["T.yaml"]),
        ('name: "\\ud800"\n', ["impossible value"]),
        ('name: "a\\0b"\n', ["impossible value", "control"]),
        ("name: 2021-02-30\n", ["impossible value"]),
    ],
)
def test_a_fault_is_named_with_its_place_and_fix(text: str, named: list[str]) -> None:
    """A wrong template is refused in words that name file, line, key, rule and value."""
    with pytest.raises(TemplateError) as caught:
        parse_template(text, "T.yaml")
    assert "T.yaml" in str(caught.value)
    for part in named:
        assert part in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    """Two wrong fields make two lines."""
    text = HEAD + "  - {name: a, type: txt, description: d}\n  - {name: b, type: int, description: d}\n"
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert len(str(caught.value).splitlines()) == 2


def test_an_unreadable_file_is_a_clear_error(tmp_path: Path) -> None:
    """A missing, a huge and a binary file are refused by name."""
    huge, binary = tmp_path / "huge.yaml", tmp_path / "binary.yaml"
    huge.write_text("# " + "x" * 300_000)
    binary.write_bytes(b"name: \xff\xfe")
    for path, words in [(tmp_path / "none.yaml", "No such file"), (huge, "larger"), (binary, "UTF-8")]:
        with pytest.raises(TemplateError, match=words) as caught:
            load_template(path)
        assert path.name in str(caught.value)


def test_dates_as_examples_are_texts() -> None:
    """An unquoted date among the examples is kept as it was written."""
    text = HEAD + "  - {name: a, type: date, description: d, examples: [2021-03-05, 2021]}\n"
    assert parse_template(text).fields[0].examples == ("2021-03-05", 2021)


def test_fields_of_rows_count_towards_the_limit() -> None:
    """A template of too many fields in all is refused with the limit."""
    many = ", ".join(f"{{name: f{at}, type: text, description: d}}" for at in range(99))
    with pytest.raises(TemplateError, match="at most 100 fields with those of its rows, got 101"):
        parse_template(ROWS + "  - {name: b, description: d, fields: [" + FIELD + ", " + many + "]}\n")


def test_rows_and_section_hints_are_read() -> None:
    """A group knows its fields, its key and the field that names a row; a single hint is a list of one."""
    field = "{name: drug, type: text, description: d, section: methods}"
    template = parse_template(ROWS + "  - {name: arm, description: An arm, key: drug, fields: [" + field + "]}\n")
    assert template.group("arm").first is template.field_at("arm", "drug")
    assert template.field_at("arm", "drug").section == ("methods",)
    assert Template.model_validate_json(template.model_dump_json()) == template
    with pytest.raises(KeyError):
        template.group("outcome")


def test_new_keys_leave_the_digest_of_old_templates_alone() -> None:
    """A template without rows and hints names the same run as before they existed."""
    assert parse_template(GOOD).digest == "9fe99117dbc639404d0dbcfb64b5e51e8f5c56d7e12715a1ac8cee0c8f61ffcc"


def test_the_template_of_the_reference_is_valid() -> None:
    """What the documentation shows as a template loads, with rows and hints."""
    page = (Path(__file__).parents[2] / "docs/reference/papers.md").read_text(encoding="utf-8")
    template = parse_template(page.split("```yaml\n")[1].split("```")[0])
    assert template.group("arm").first.name == "drug"
    assert template.field("design").section == ("methods",)
