"""The stand-in for Shakespeare's roles: speech from small probabilistic grammars, one per role.

All roles share the rules and the function words. Each role has its own probabilities of the rules and its own content
words: half of them unique to the role, half common to its gender, with Zipf frequencies in an order of its own. Words
are made of syllables whose sounds have weights by role and gender, so that pairs of letters tell roles apart.
"""

import itertools
from bisect import bisect
from collections.abc import Iterator, Sequence

import numpy as np

#: symbol → its expansions; a symbol in no rule (nor in CONTENT) is text.
RULES = {
    "SENTENCE": "CLAUSE END | CLAUSE , LINK CLAUSE END | NAME , CLAUSE END | O THING , how ADJECTIVE ! "
    "| ASK BE THING ADJECTIVE ? | CLAUSE ; CLAUSE END | CLAUSE - WHO VERB it - LINK CLAUSE END",
    "CLAUSE": "THING VERB THING | WHO VERB THING | THING BE ADJECTIVE | let WHOM VERB THING | WHO BE in THING",
    "THING": "OWNER NOUN | OWNER ADJECTIVE NOUN | OWNER NOUN of THING | NAME | NOUN and NOUN",
    "OWNER": "the | a | my | thy | this | our | his | her",
    "WHO": "I | thou | we | they | he | she | you",
    "WHOM": "me | thee | us | them | him | her",
    "BE": "is | was | hath been | shall be | is not | 'tis",
    "LINK": "and | but | for | yet | that | when | if",
    "ASK": "why | where | what | how now, | who",
    "END": ". | ! | ; | : | .",
}
CONTENT = ("NOUN", "VERB", "ADJECTIVE", "NAME")
WORDS = 12  # of each kind, unique to the role; the same number for its gender
ONSETS = ("b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "gr", "sh", "st", "th", "")
VOWELS = ("a", "e", "i", "o", "u", "ea", "ou", "ie")
CODAS = ("", "", "n", "r", "s", "t", "l", "d", "ck", "th", "ght", "ve")

Grammar = dict[str, tuple[list[float], list[list[str]]]]  # symbol → (cumulative probabilities, expansions, last first)


def dialogue(rng: np.random.Generator, lengths: Sequence[int], female: Sequence[bool]) -> list[str]:
    """One text per role, with the given numbers of characters."""
    shared = [_lexicon(rng), _lexicon(rng)]
    uniform = itertools.chain.from_iterable(rng.random(4096).tolist() for _ in itertools.count())
    cast = zip(lengths, female, strict=True)
    return [_speak(_grammar(rng, shared[int(woman)]), length, uniform) for length, woman in cast]


def _grammar(rng: np.random.Generator, shared: dict[str, list[str]]) -> Grammar:
    """A role's own probabilities of all rules, and its words."""
    grammar = {}
    for symbol, rule in RULES.items():
        expansions = [expansion.split()[::-1] for expansion in rule.split("|")]
        grammar[symbol] = (np.cumsum(rng.dirichlet(np.full(len(expansions), 2.0)))[:-1].tolist(), expansions)
    zipf = np.cumsum(1 / np.arange(1, 2 * WORDS + 1))
    for kind, own in _lexicon(rng).items():
        words = [*own, *shared[kind]]
        grammar[kind] = ((zipf[:-1] / zipf[-1]).tolist(), [[words[i]] for i in rng.permutation(len(words))])
    return grammar


def _lexicon(rng: np.random.Generator) -> dict[str, list[str]]:
    """Invented words of each kind, from syllables whose sounds have weights of their own."""
    sounds = [(part, rng.dirichlet(np.full(len(part), 0.4))) for part in (ONSETS, VOWELS, CODAS)]
    lexicon = {}
    for kind in CONTENT:
        syllables = rng.integers(1, 4, WORDS)
        drawn = [[part[i] for i in rng.choice(len(part), syllables.sum(), p=weights)] for part, weights in sounds]
        parts = map("".join, zip(*drawn, strict=True))
        words = ["".join(itertools.islice(parts, int(n))) for n in syllables]
        lexicon[kind] = [word.capitalize() for word in words] if kind == "NAME" else words
    return lexicon


def _speak(grammar: Grammar, length: int, uniform: Iterator[float]) -> str:
    """Sentences, cut at the given number of characters."""
    sentences, said = list[str](), 0
    while said < length:
        sentences.append(_sentence(grammar, uniform))
        said += len(sentences[-1]) + 1
    return " ".join([*sentences, ""])[:length]


def _sentence(grammar: Grammar, uniform: Iterator[float]) -> str:
    """Derived leftmost first; punctuation follows a word without a blank."""
    stack, words = ["SENTENCE"], list[str]()
    while stack:
        symbol = stack.pop()
        if symbol in grammar:
            cumulative, expansions = grammar[symbol]
            stack.extend(expansions[bisect(cumulative, next(uniform))])
        elif symbol in ".,;:!?":
            words[-1] += symbol
        else:
            words.append(symbol)
    text = " ".join(words)
    return text[0].upper() + text[1:]
