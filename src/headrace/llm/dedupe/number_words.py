"""Number words of some languages. Those that are articles too, as `un` and `ein`, are not here."""

from __future__ import annotations

from collections.abc import Mapping

_CARDINALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig",
    "zero - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize - - - vingt",
    "cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
    "dieciocho diecinueve veinte",
    "zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove venti",
)
#: From 1.
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th",
    "erste zweite dritte vierte funfte sechste siebte achte neunte zehnte elfte zwolfte",
    "erster zweiter dritter vierter funfter sechster siebter achter neunter zehnter elfter zwolfter",
    "premier deuxieme troisieme quatrieme cinquieme sixieme septieme huitieme neuvieme dixieme onzieme douzieme",
    "primero segundo tercero cuarto quinto sexto septimo octavo noveno decimo undecimo duodecimo",
    "primera segunda tercera cuarta quinta sexta septima octava novena decima undecima duodecima",
    "primo secondo terzo quarto quinto sesto settimo ottavo nono decimo undicesimo dodicesimo",
)
#: From 20 in tens, to 100.
_TENS = (
    "twenty thirty forty fifty sixty seventy eighty ninety hundred",
    "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig hundert",
    "vingt trente quarante cinquante soixante - - - cent",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
)
#: Umlauts stand here without and with their dots: whether a name keeps its diacritics is the caller's choice.
_MARKED = {
    **{"fünf": 5, "zwölf": 12, "fünfzehn": 15, "fünfzig": 50, "fünfte": 5, "fünfter": 5, "zwölfte": 12, "zwölfter": 12},
    **{"dieciséis": 16, "deuxième": 2, "troisième": 3, "quatrième": 4, "cinquième": 5, "sixième": 6, "septième": 7},
    **{"huitième": 8, "neuvième": 9, "dixième": 10, "onzième": 11, "douzième": 12},
    **{"séptimo": 7, "décimo": 10, "undécimo": 11, "duodécimo": 12},
    **{"séptima": 7, "décima": 10, "undécima": 11, "duodécima": 12, "thousand": 1000, "tausend": 1000},
}

#: The value of each number word, without case.
NUMBER_WORDS: Mapping[str, int] = {
    **{word: value for row in _CARDINALS for value, word in enumerate(row.split()) if word != "-"},
    **{word: value for row in _ORDINALS for value, word in enumerate(row.split(), start=1)},
    **{word: 10 * value for row in _TENS for value, word in enumerate(row.split(), start=2) if word != "-"},
    **_MARKED,
}
