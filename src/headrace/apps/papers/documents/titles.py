"""What titles of sections say, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum


class SectionKind(StrEnum):
    """What a section is about, whatever its title."""

    #: All that stands above the abstract: title, authors, where it was published.
    TITLE = "title"
    ABSTRACT = "abstract"
    INTRODUCTION = "introduction"
    METHODS = "methods"
    RESULTS = "results"
    DISCUSSION = "discussion"
    CONCLUSION = "conclusion"
    REFERENCES = "references"
    FUNDING = "funding"
    #: Acknowledgements, appendices, and every title that says nothing of this list.
    OTHER = "other"


_NUMBER = re.compile(
    r"(?:section\s+)?(?:\d{1,2}(?:\.\d{1,2}){0,4}(?:[.)](?=\s|[^\W\d])|(?=\s|[\u2e80-\u9fff]))|[ivx]{1,5}[.)]\s|[a-h][.)]\s"
    r"|第?[一二三四五六七八九十]{1,3}[章节、..])\s*",
    re.IGNORECASE,
)
_AND = r"(?: and |与|和|及)"
#: Whole titles, in lower case and without their numbers, as patterns; `@` in them stands for "and" in both languages.
_TITLES: dict[SectionKind, tuple[str, ...]] = {
    SectionKind.ABSTRACT: (
        "(?:(?:structured|graphical|author|plain[- ]language|lay|executive|english) )?(?:abstract|summary)",
        "synopsis",
        "(?:中文|英文)?摘要",
        "内容提要",
    ),
    SectionKind.INTRODUCTION: (
        "introduction(?:@[a-z ]+)?",
        "background(?:@(?:aims?|objectives?|purpose|rationale|significance))?",
        "rationale",
        "(?:aims?|objectives?|purpose)(?:@(?:aims?|objectives?|hypothes[ei]s))?",
        "引言|前言|绪论|导言|导论|(?:研究)?背景|(?:研究)?目的|问题的提出",
    ),
    SectionKind.METHODS: (
        "(?:[a-z]+(?:, [a-z]+)*,?@)?(?:methods?|methodology|procedures?)",
        "(?:methods?|methodology)@(?:materials?|analys[ei]s|design|data|procedures?|participants|subjects|patients)",
        "(?:online|star ?★?|study|research|statistical|experimental) (?:methods?|procedures?|methodology)",
        "(?:study|research|experimental) design(?:@[a-z]+)?",
        "experimental(?: (?:section|part|details))?",
        "materials?(?:@reagents)?",
        "(?:(?:材料|资料|对象|数据|研究对象|病例资料)@)?(?:实验|研究|试验|统计)?方法",
        "实验部分|试验设计|研究设计|一般资料",
    ),
    SectionKind.RESULTS: (
        "(?:main |key |experimental )?(?:results?|findings)(?:@(?:discussions?|analys[ei]s|interpretation))?",
        "(?:实验|研究|试验|调查)?结果(?:@(?:讨论|分析))?",
    ),
    SectionKind.DISCUSSION: (
        "(?:general )?discussions?(?:@(?:conclusions?|limitations|implications))?",
        "comments?|interpretation",
        "(?:strengths@)?limitations(?: of (?:the|this) study)?",
        "(?:分析@)?讨论(?:@结论)?",
    ),
    SectionKind.CONCLUSION: (
        "(?:summary@)?conclusions?(?:@(?:future (?:work|directions)|outlook|perspectives|recommendations))?",
        "concluding remarks",
        "结论(?:@(?:展望|建议))?|结语|总结(?:@展望)?|小结|结束语",
    ),
    SectionKind.REFERENCES: (
        "references?(?: cited| list|@notes)?",
        "bibliography",
        "(?:literature|works) cited|cited literature",
        "(?:主要)?参考文献|引用文献",
    ),
    SectionKind.FUNDING: (
        "(?:sources? of )?(?:funding|financial support|grant support|sponsorship)"
        "(?: (?:sources?|statement|information|support|disclosure))?",
        "financial disclosures?",
        "role of (?:the )?(?:funding source|funders?|sponsors?)",
        "(?:基金|资助)(?:项目|信息|来源)?|资金来源",
    ),
    SectionKind.OTHER: (
        "acknowledge?ments?|致谢",
        "appendi(?:x|ces)(?: [a-z0-9])?|附录",
        r"supplementa\w+ (?:materials?|information|data|files?)|supporting information",
        "additional (?:information|files?)",
        "(?:declaration of )?(?:conflicts? of interests?|competing (?:financial )?interests?)(?: statement)?",
        "declarations?(?: of interests?)?|disclosures?|利益冲突(?:声明)?",
        "(?:author(?:s?['’]?s?)? )contributions?|credit authorship .{0,30}statement|contributors|作者贡献(?:声明)?",
        "data (?:and [a-z]+ )?(?:availability|sharing)(?: statement)?|availability of data.{0,20}",
        "ethics(?: .{0,40})?|ethical (?:approval|considerations|statement)|伦理(?:审批|声明)",
        "informed consent(?: statement)?|consent (?:for|to) .{0,40}",
        "abbreviations|nomenclature|trial registration|缩略语",
        "(?:author|publisher)(?:s?['’]?s?) (?:note|details|information)",
    ),
}
_PATTERNS = {kind: re.compile("|".join(titles).replace("@", _AND)) for kind, titles in _TITLES.items()}
#: What stands around a title without being part of it.
_MARKS = re.compile(r"^[\W_]+|[\W_]+$")


def split_number(title: str) -> tuple[str, str]:
    """The number before a title, and the title.

    >>> split_number("2.1. Participants"), split_number("Methods"), split_number("三、结果")
    (('2.1.', 'Participants'), ('', 'Methods'), ('三、', '结果'))
    """
    title = " ".join(title.split())
    match = _NUMBER.match(title)
    if match is None or match.end() == len(title):
        return "", title
    return match[0].strip(), title[match.end() :]


def kind_of(title: str) -> SectionKind | None:
    """What a section with that title is about; None where the title does not say.

    >>> kind_of("2. MATERIALS & METHODS:"), kind_of("Participants"), kind_of("四、结果与讨论")
    (<SectionKind.METHODS: 'methods'>, None, <SectionKind.RESULTS: 'results'>)
    """
    plain = plain_title(title)
    if not plain or len(plain) > 80:
        return None
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.fullmatch(plain)), None)


def plain_title(title: str) -> str:
    """A title without its number and the marks around it, in lower case, its letters not spaced out.

    >>> plain_title("1 I N T R O D U C T I O N"), plain_title("摘 要:")
    ('introduction', '摘要')
    """
    text = unicodedata.normalize("NFKC", split_number(title)[1])
    if re.fullmatch(r"(?:\w ){3,}\w:?", text):
        text = text.replace(" ", "")
    text = re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", text)
    return " ".join(_MARKS.sub("", text.casefold()).replace("&", " and ").split())
