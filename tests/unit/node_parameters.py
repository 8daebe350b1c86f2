"""Parameters of all kinds of nodes, and what grows from them when parts are changed at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any


def _deep(levels: int) -> Any:
    made: Any = []
    for _ in range(levels):
        made = [made]
    return made


# fmt: off
#: What people write, and what nobody would.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 3.0, 2.5, 1e308, 10**30, 10**400, "", " ", "a", "b", "a.b", "a[0]", "['a b']",
    "data", "0", "3", "-1", "--1", "²", "٣", "1_000", "1e999", "nan", "0x1f", "9" * 50, "\0", "\ud800", "x" * 2_000,
    "true", "[1]", '{"a": 1}', "{'a': 1}", "2026-01-01", "2026-01-01T10:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01",
    "Europe/Berlin", "days", "year", "both", "empty", "input1", "input2", "first", "={{ $json.a }}", "={{ $json }}",
    "={{ [] }}", "={{ {} }}", "={{ null }}", "={{ 1.5 }}", "={{ $json.b }}", "={{ $json.none.x }}", "=x {{ $json.b }}",
    "={{ 1 +", [], {}, [None], [[]], [{}], ["a"], [1], {"a": 1}, {"a": None}, [{"name": "a", "value": 1}],
    [{"name": None}], [{"name": ["a"]}], [{"fieldName": "a"}], {"values": [1]}, {"parameter": [{"name": "x"}]},
    {"parameters": [{"name": "x", "value": {"a": [1]}}]}, {"value": "x", "__rl": True}, _deep(70), _deep(400),
)
_CONDITION = {"leftValue": "={{ $json.a }}", "rightValue": 1, "operator": {"type": "number", "operation": "gt"}}
_CONDITIONS = {
    "options": {"caseSensitive": True, "typeValidation": "loose"}, "combinator": "and", "conditions": [_CONDITION],
}
_FIRST_CONDITIONS = {
    "string": [{"value1": "={{ $json.b }}", "operation": "contains", "value2": "a"}],
    "number": [{"value1": 1, "operation": "larger", "value2": 0}], "boolean": [{"value1": True, "value2": True}],
    "dateTime": [{"value1": "2026-01-01", "operation": "after", "value2": "={{ $json.a }}"}],
}
_TEXT = {"leftValue": "a", "rightValue": "={{ $json.b }}", "operator": {"type": "string", "operation": "equals"}}
_LIST = {"leftValue": "={{ $json.a }}", "rightValue": 1, "operator": {"type": "array", "operation": "contains"}}
_DATE = {"leftValue": 0, "rightValue": "={{ $json.a }}", "operator": {"type": "dateTime", "operation": "after"}}
_SOURCES = {"Query": "queryParameters", "Headers": "headerParameters", "Body": "bodyParameters"}
_ROWS = {"parameters": [{"name": "a", "value": "={{ $json.a }}"}]}
_RESPONSE = {"response": {"response": {"fullResponse": True, "neverError": False, "responseFormat": "autodetect"}}}
#: What the parameters of each type look like, in some of its modes and versions.
SEEDS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "manual": ({},),
    "webhook": ({"httpMethod": "POST", "path": "a", "responseMode": "lastNode", "options": {"rawBody": True}},),
    "schedule": (
        {"rule": {"interval": [{"field": "hours", "hoursInterval": 6, "triggerAtMinute": 5}]}},
        {"rule": {"interval": [{"field": "weeks", "triggerAtDay": [1], "triggerAtHour": 9}, {"field": "months"}]}},
        {"rule": {"interval": [{"field": "cronExpression", "expression": "0 5 * * *"}, {"field": "seconds"}]}},
    ),
    "cron": ({"triggerTimes": {"item": [{"mode": "everyX", "unit": "minutes", "value": 10}, {"mode": "custom"}]}},),
    "interval": ({"interval": 2, "unit": "hours"},),
    "executeWorkflowTrigger": (
        {"inputSource": "workflowInputs", "workflowInputs": {"values": [{"name": "a", "type": "number"}]}},
        {"inputSource": "jsonExample", "jsonExample": '{"a": 1}'},
    ),
    "errorTrigger": ({},),
    "set": (
        {"mode": "manual", "include": "selected", "includeFields": "a", "includeOtherFields": True,
         "options": {"dotNotation": True, "ignoreConversionErrors": True},
         "assignments": {"assignments": [{"name": "x.y", "type": "number", "value": "={{ $json.a }}"}]}},
        {"mode": "raw", "jsonOutput": '={"a": {{ $json.a }}}'},
        {"fields": {"values": [{"name": "x", "type": "objectValue", "objectValue": '={"b": {{ $json.b }}}'}]}},
        {"keepOnlySet": True, "values": {"string": [{"name": "x", "value": "={{ $json.a }}"}], "number": [{}]}},
    ),
    "if": ({"conditions": _CONDITIONS}, {"conditions": _FIRST_CONDITIONS, "combineOperation": "any"},
           {"conditions": {**_CONDITIONS, "conditions": [_TEXT, _LIST, _DATE]}, "looseTypeValidation": True}),
    "switch": (
        {"mode": "rules", "rules": {"values": [{"conditions": _CONDITIONS, "outputKey": "x", "renameOutput": True}]},
         "options": {"fallbackOutput": "extra", "allMatchingOutputs": True}},
        {"mode": "expression", "numberOutputs": 3, "output": "={{ $json.a }}"},
        {"mode": "rules", "dataType": "number", "value1": "={{ $json.a }}", "fallbackOutput": 3,
         "rules": {"rules": [{"operation": "larger", "value2": 3, "output": 1}]}},
    ),
    "filter": ({"conditions": _CONDITIONS}, {"conditions": _FIRST_CONDITIONS, "combineConditions": "OR"}),
    "merge": (
        {"mode": "combine", "combineBy": "combineByFields", "fieldsToMatchString": "a", "joinMode": "keepEverything",
         "options": {"fuzzyCompare": True, "multipleMatches": "first", "clashHandling": {"values": {
             "resolveClash": "preferInput1", "mergeMode": "deepMerge", "overrideEmpty": True}}}},
        {"mode": "combine", "combineBy": "combineByPosition", "numberInputs": 3, "options": {"includeUnpaired": True}},
        {"mode": "combine", "combinationMode": "mergeByFields", "mergeByFields": {
            "values": [{"field1": "a", "field2": "b"}]}, "outputDataFrom": "input2"},
        {"mode": "chooseBranch", "output": "specifiedInput", "useDataOfInput": 1}, {"mode": "combineAll"},
        {"mode": "mergeByKey", "propertyName1": "a", "propertyName2": "a", "overwrite": "blank"},
        {"mode": "mergeByIndex", "join": "outer"}, {"mode": "passThrough", "output": "input1"},
    ),
    "splitOut": ({"fieldToSplitOut": "a", "include": "allOtherFields", "options": {"destinationFieldName": "x"}},),
    "aggregate": (
        {"aggregate": "aggregateIndividualFields", "options": {"mergeLists": True, "groupByFields": "b"},
         "fieldsToAggregate": {"fieldToAggregate": [{"fieldToAggregate": "a", "renameField": True}]}},
        {"aggregate": "aggregateAllItemData", "destinationFieldName": "x", "include": "specifiedFields",
         "fieldsToInclude": "a,b"},
    ),
    "splitInBatches": ({"batchSize": 2, "options": {"reset": "={{ $json.a }}"}},),
    "sort": ({"type": "simple", "sortFieldsUi": {"sortField": [{"fieldName": "a", "order": "descending"}]}},
             {"type": "random"}),
    "limit": ({"maxItems": 2, "keep": "lastItems"},),
    "removeDuplicates": ({"operation": "removeDuplicateInputItems", "compare": "selectedFields",
                          "fieldsToCompare": "a"}, {"compare": "allFieldsExcept", "fieldsToExclude": "a"}),
    "dateTime": (
        {"operation": "getCurrentDate", "includeTime": True, "options": {"timezone": "UTC"}},
        {"operation": "addToDate", "magnitude": "={{ $json.a }}", "timeUnit": "months", "duration": 3},
        {"operation": "subtractFromDate", "magnitude": "2026-01-01", "timeUnit": "years", "duration": "={{ $json.a }}"},
        {"operation": "formatDate", "date": "={{ $json.a }}", "format": "custom", "customFormat": "yyyy",
         "options": {"fromFormat": "yyyy-MM-dd"}},
        {"operation": "roundDate", "date": "={{ $json.a }}", "mode": "roundUp", "to": "month", "toNearest": "week"},
        {"operation": "getTimeBetweenDates", "startDate": "={{ $json.a }}", "endDate": "9998-12-31",
         "units": ["year", "day"], "options": {"isoString": True}},
        {"operation": "extractDate", "date": "={{ $json.a }}", "part": "week"},
    ),
    "wait": (
        {"resume": "timeInterval", "amount": 2, "unit": "hours"}, {"resume": "specificTime", "dateTime": "2026-04-01"},
        {"resume": "webhook", "limitWaitTime": True, "limitType": "afterTimeInterval", "resumeAmount": 1,
         "resumeUnit": "days"},
    ),
    "noOp": ({},),
    "stopAndError": ({"errorType": "errorMessage", "errorMessage": "={{ $json.a }}"},
                     {"errorType": "errorObject", "errorObject": "={{ $json }}"}),
    "executeWorkflow": ({"source": "database", "workflowId": {"value": "x", "__rl": True}, "mode": "each",
                         "workflowInputs": {"value": {"a": 1}}, "options": {"waitForSubWorkflow": True}},),
    "httpRequest": (
        {"method": "POST", "url": "https://e.example", "authentication": "genericCredentialType",
         "genericAuthType": "httpHeaderAuth", "$credentials": {"httpHeaderAuth": {"name": "K"}},
         **{f"send{what}": True for what in _SOURCES}, **dict.fromkeys(_SOURCES.values(), _ROWS),
         "contentType": "form-urlencoded", "specifyBody": "keypair", "options": {"timeout": 5, **_RESPONSE}},
        {"requestMethod": "POST", "url": "https://e.example", "jsonParameters": True, "bodyParametersJson": "{}",
         "options": {"bodyContentType": "raw", "splitIntoItems": True}, "authentication": "headerAuth"},
    ),
    "llmChat": ({"prompt": "={{ $json.a }}", "model": "m", "maxTokens": 5, "temperature": 0},),
    "llmExtract": ({"text": "x", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}},),
    "informationExtractor": ({"text": "x", "schemaType": "fromAttributes", "attributes": {
        "attributes": [{"name": "a", "type": "string", "description": "b", "required": True}]}},
        {"text": "x", "schemaType": "fromJson", "jsonSchemaExample": '{"a": 1}'}),
    "readFile": ({"fileSelector": "a*", "operation": "read", "options": {"dataPropertyName": "data"}},),
    "readBinaryFiles": ({"fileSelector": "a*", "dataPropertyName": "data"},),
    "extractFromFile": ({"operation": "csv", "binaryPropertyName": "data", "options": {"delimiter": ","}},
                        {"operation": "pdf", "options": {"maxPages": 2}}, {"operation": "fromJson"}),
    "writeFile": ({"operation": "write", "fileName": "a", "format": "csv", "options": {"append": True}},
                  {"operation": "write", "fileName": "={{ $json.b }}", "dataPropertyName": "data"}),
    "stickyNote": ({"content": "x"},),
}
# fmt: on


def grown(name: str, chance: Random) -> dict[str, Any]:
    """Return parameters of a type of which some parts are others, missing or too many."""
    made = _copied(chance.choice(SEEDS.get(name, ({},))))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        _change(made, chance)
    return made


def _change(made: dict[str, Any], chance: Random) -> None:
    places = list(_places(made))
    if not places or chance.random() < 0.05:
        made[chance.choice(("options", "mode", "operation", "a"))] = _copied(chance.choice(ODD))
        return
    inside, key = chance.choice(places)
    if chance.random() < 0.1:
        del inside[key]
    else:
        inside[key] = _copied(chance.choice(ODD))


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys if depth < 8 else ():
        yield value, key
        yield from _places(value[key], depth + 1)


def _copied(value: Any, depth: int = 0) -> Any:
    """Return a copy that can be changed, but for what lies deeper than is changed."""
    if depth > 10 or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_copied(one, depth + 1) for one in value]
    return {name: _copied(one, depth + 1) for name, one in value.items()}


def grown_items(chance: Random) -> list[dict[str, Any]]:
    """Return a few items with members of all kinds."""
    made = []
    for _ in range(chance.choice((0, 1, 2, 3))):
        json = {name: _copied(chance.choice(ODD)) for name in ("a", "b", "c", "a.b") if chance.random() < 0.6}
        item: dict[str, Any] = {"json": json}
        if chance.random() < 0.3:
            item["binary"] = {"data": {"id": "file", "fileName": "a.csv", "mimeType": "text/csv"}}
        made.append(item)
    return made
