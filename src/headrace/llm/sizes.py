"""How many tokens a request will take: guessed from its length, and corrected by what the provider counted before."""

from __future__ import annotations

import json
import math

from headrace.model.llm import CompletionRequest

#: Bytes of UTF-8 in a token: close for English, and for Chinese, of which a character has three.
_BYTES = 4
#: What roles and separators take.
_TOKENS_PER_MESSAGE = 4
#: How far a guess is corrected at most, and how fast: up at once, since too little is refused, down slowly.
_LEAST, _MOST = 0.5, 4.0
_DOWN = 0.05


def guess_tokens(request: CompletionRequest) -> int:
    """Return the tokens of a request's messages, schema and tools, about.

    >>> from headrace.model.llm import Message
    >>> guess_tokens(CompletionRequest(model="m", messages=(Message("user", "word " * 80),)))
    104
    """
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    for extra in (request.schema, request.tools):
        if extra:
            size += len(json.dumps(extra, default=dict))
    return math.ceil(size / _BYTES) + _TOKENS_PER_MESSAGE * len(request.messages)


class Sizes:
    """The guesses for one model, corrected as its answers come."""

    def __init__(self, expected_tokens: int) -> None:
        """`expected_tokens`: the length of answers whose most tokens are not given, until some were seen."""
        self._ratio = 1.0
        self._expected = expected_tokens
        self._longest = 0
        self._answers = self._answered = 0

    def input_tokens(self, request: CompletionRequest) -> int:
        """Return the tokens of a prompt, rather too many than too few."""
        return math.ceil(guess_tokens(request) * self._ratio)

    def max_tokens(self, request: CompletionRequest) -> int:
        """Return the most tokens of the answer; without a bound the longest seen, and no less than was expected."""
        return request.max_tokens or max(self._expected, self._longest)

    def usual_answer(self, request: CompletionRequest) -> int:
        """Return the tokens of an answer as answers were so far; before the first what was expected."""
        usual = round(self._answered / self._answers) if self._answers else self._expected
        return min(usual, request.max_tokens or usual)

    def learn(self, request: CompletionRequest, input_tokens: int, output_tokens: int) -> None:
        """Take in what the provider counted; counts of 0 say nothing."""
        self._longest = max(self._longest, output_tokens)
        self._answers, self._answered = self._answers + 1, self._answered + output_tokens
        if input_tokens > 0:
            seen = min(max(input_tokens / guess_tokens(request), _LEAST), _MOST)
            self._ratio = seen if seen > self._ratio else self._ratio + _DOWN * (seen - self._ratio)
