"""Node types of n8n that there are none of here: what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_CORE = "n8n-nodes-base."
_CHAIN = "@n8n/n8n-nodes-langchain."
_CODE = (
    "flows run no code: use set, splitOut, aggregate, sort or an expression, or write a node type of your own as a "
    "Python entry point of the group headrace.nodes"
)
_FILE = "use readFile, extractFromFile and writeFile, or a node type of your own (entry point headrace.nodes)"
_MODEL = "leave it out: headrace.llmChat and headrace.llmExtract take the model by its name in their parameter model"
_ASK = "use headrace.llmChat for text, or headrace.llmExtract for data by a schema"
_PARSER = "use headrace.llmExtract: its schema is what the answer is held to"
_MEMORY = "runs keep no conversation: give the earlier messages to headrace.llmChat in its prompt"
_VECTOR = "use httpRequest to the search service, and put what it found into the prompt of headrace.llmChat"
_FORM = "use webhook: a page of your own sends its form to it"
_POLL = "use schedule and an httpRequest that asks for what is new, or webhook where the service can call one"
_SQL = "use httpRequest to a service before the database, or a node type of your own (entry point headrace.nodes)"
_REMEMBER = "runs remember nothing of each other: use httpRequest to a service that keeps it"
_CALL = "use httpRequest with a credential of the service"

#: By the name behind "n8n-nodes-base.".
BY_NAME: Mapping[str, str] = {
    "code": _CODE,
    "function": _CODE,
    "functionItem": _CODE,
    "aiTransform": _CODE,
    "executeCommand": f"flows start no programs; {_CODE}",
    "ssh": "flows start no programs: use httpRequest to a service, or a node type of your own",
    "itemLists": "use splitOut, aggregate, sort, limit or removeDuplicates: one of them for each operation",
    "spreadsheetFile": "use extractFromFile to read a sheet, or writeFile to write items as CSV",
    "readPDF": "use extractFromFile with its operation pdf",
    "moveBinaryData": "use extractFromFile to read what is in a file, or writeFile to write one",
    "summarize": "use aggregate with options.groupByFields, and a set node that counts or sums its lists",
    "compareDatasets": "use merge, combined by matching fields, with outputs that keep matches or what has none",
    "renameKeys": "use set: a field of the new name, and only the fields that are wanted",
    "html": "use a set node with an expression, or headrace.llmExtract on the text of a page",
    "htmlExtract": "use headrace.llmExtract on the text of the page, or a node type of your own",
    "markdown": "use a set node with an expression, or a node type of your own",
    "xml": "use a node type of your own (entry point headrace.nodes), or ask the service for JSON",
    "crypto": "use a node type of your own (entry point headrace.nodes)",
    "jwt": "use a credential of the kind bearer, or a node type of your own",
    "totp": "use a node type of your own (entry point headrace.nodes)",
    "compression": "use a node type of your own (entry point headrace.nodes)",
    "editImage": "use a node type of your own (entry point headrace.nodes)",
    "convertToFile": "use writeFile, which writes the items as JSON, CSV or text",
    "formTrigger": _FORM,
    "form": _FORM,
    "respondToWebhook": (
        'set responseMode of the webhook to "lastNode" and take this node out: the items that the flow ends with are '
        "the answer"
    ),
    "sseTrigger": _POLL,
    "rssFeedRead": "use httpRequest, and headrace.llmExtract or a node type of your own for what it answers",
    "rssFeedReadTrigger": _POLL,
    "emailReadImap": _POLL,
    "emailSend": "use httpRequest to the interface of a mail service, with a credential",
    "n8n": "use httpRequest to our own interface, or executeWorkflow",
    "n8nTrigger": "use schedule or manual",
    "workflowTrigger": "use schedule or manual",
    "executionData": "take it out: runs are found by their workflow and their key",
    "debugHelper": "take it out; stopAndError makes a run fail",
    "simulate": "use a set node",
    "evaluation": "use a set node: runs are compared outside of flows",
    "evaluationTrigger": "use manual, with the items to try given to the run",
    "graphql": "use httpRequest: POST with the query in a JSON body",
    "dataTable": _REMEMBER,
    "redis": _REMEMBER,
    "localFileTrigger": "use schedule and readFile",
    "ftp": _FILE,
    "git": _FILE,
    "awsS3": "use httpRequest to an address that is signed beforehand, or a node type of your own",
    "postgres": _SQL,
    "mySql": _SQL,
    "microsoftSql": _SQL,
    "mongoDb": _SQL,
    "snowflake": _SQL,
    "openAi": _ASK,
}
#: By how the name behind "@n8n/n8n-nodes-langchain." begins; the first that fits counts.
BY_BEGINNING: Mapping[str, str] = {
    "textClassifier": "use headrace.llmExtract with an enum in its schema, and a switch node behind it",
    "sentimentAnalysis": "use headrace.llmExtract with an enum in its schema, and a switch node behind it",
    "chainSummarization": _ASK,
    "chainRetrievalQa": _VECTOR,
    "chain": _ASK,
    "agent": f"there are no agents that choose tools: {_ASK}, and nodes around it for what the tools did",
    "openAi": _ASK,
    "anthropic": _ASK,
    "googleGemini": _ASK,
    "ollama": _ASK,
    "lm": _MODEL,
    "modelSelector": _MODEL,
    "outputParser": _PARSER,
    "memory": _MEMORY,
    "chatTrigger": "use webhook: each message is a request",
    "chat": "use webhook: each message is a request",
    "mcpTrigger": "use webhook",
    "mcp": "use httpRequest",
    "tool": "there are no agents that choose tools: use the node that does what the tool did, and if or switch",
    "code": _CODE,
    "vectorStore": _VECTOR,
    "embeddings": _VECTOR,
    "retriever": _VECTOR,
    "document": "use extractFromFile for the text of a document",
    "textSplitter": "use splitOut on a list that a set node makes",
}


def hint_of(kind: str) -> str:
    """Return what to use instead of a node type that is unknown here.

    >>> hint_of("n8n-nodes-base.gmail")
    'use httpRequest with a credential of the service'
    """
    if kind.startswith(_CORE):
        return _of_core(kind.removeprefix(_CORE))
    if kind.startswith(_CHAIN):
        name = kind.removeprefix(_CHAIN)
        return next((hint for begin, hint in BY_BEGINNING.items() if name.startswith(begin)), _ASK)
    return "install the package that has it as a Python entry point of the group headrace.nodes, or use httpRequest"


def _of_core(name: str) -> str:
    known = BY_NAME.get(name)
    if known is not None:
        return known
    if name.endswith("Tool") and name != "Tool":
        return BY_BEGINNING["tool"]
    return _POLL if name.endswith("Trigger") else _CALL
