r"""Numbers between bounds as regular expressions, digit by digit, so that they hold exactly.

llguidance's own go by doubles: integers beyond 2^53 are rounded, and bounds from 2^63 on fail.

>>> between(Bounds(lowest=Decimal(8), highest=Decimal(12)), is_integer=True)
'(/(8|(9)|[1-9][0-9]{1,})/ & /([1-9]|0|1([0-1])|12)/)'
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

EXACT: Final = 2**53 - 1
"""Integers up to here are all doubles, and so are their neighbours."""
_MOST_RESIDUES: Final = 1000
_MOST_DIGITS: Final = 400
"""Most digits of a bound; the largest double has 309."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and greatest value of a number, and whether they are excluded themselves."""

    lowest: Decimal | None = None
    highest: Decimal | None = None
    is_above: bool = False
    is_below: bool = False

    @property
    def are_empty(self) -> bool:
        """Whether no number lies between them."""
        if self.lowest is None or self.highest is None:
            return False
        is_open = self.is_above or self.is_below
        return self.lowest > self.highest or (is_open and self.lowest == self.highest)

    def have(self, number: Decimal) -> bool:
        """Whether a number lies between them."""
        is_low = self.lowest is not None and (
            number < self.lowest or (self.is_above and number == self.lowest)
        )
        is_high = self.highest is not None and (
            number > self.highest or (self.is_below and number == self.highest)
        )
        return not is_low and not is_high

    def of_integers(self) -> Bounds:
        """The narrowest bounds of the integers between these, themselves allowed."""
        lowest, highest = self.lowest, self.highest
        if lowest is not None:
            whole = _whole(lowest, up=True)
            lowest = Decimal(int(whole) + (self.is_above and whole == lowest))
        if highest is not None:
            whole = _whole(highest, up=False)
            highest = Decimal(int(whole) - (self.is_below and whole == highest))
        return Bounds(lowest, highest)

    def negated(self) -> Bounds:
        """What the opposite of such a number may be."""
        # Arithmetic would round to 28 digits.
        lowest = None if self.highest is None else self.highest.copy_negate()
        highest = None if self.lowest is None else self.lowest.copy_negate()
        return Bounds(lowest, highest, self.is_below, self.is_above)


def bounds_of(schema: dict[str, Any]) -> Bounds:
    """Return the bounds of a schema, of which the narrowest hold."""
    lowest, is_above = _narrowest(schema, "minimum", "exclusiveMinimum", max)
    highest, is_below = _narrowest(schema, "maximum", "exclusiveMaximum", min)
    return Bounds(lowest, highest, is_above, is_below)


def _narrowest(
    schema: dict[str, Any], name: str, exclusive: str, choose: Any
) -> tuple[Decimal | None, bool]:
    given = [(decimal_of(schema[key]), key) for key in (exclusive, name) if key in schema]
    if not given:
        return None, False
    found = choose(value for value, _ in given)
    return found, (found, exclusive) in given


def decimal_of(number: float) -> Decimal:
    """Return a number with the digits that it is written with, a large double as it is exactly.

    Readers of JSON round 0.1 as the schema's, but compare whole numbers with what it is exactly.
    """
    if isinstance(number, float) and abs(number) <= EXACT:
        return Decimal(repr(number))
    return Decimal(int(number))


def between(bounds: Bounds, *, is_integer: bool) -> str | None:
    """Return what matches the numbers between bounds, for a TERMINAL of Lark; None for none.

    Numbers are written as JSON has them, without an exponent; integers without a point.
    """
    if is_integer:
        bounds = bounds.of_integers()
    ways = []
    for sign, each in (("", bounds), ('"-" ', bounds.negated())):
        if each.highest is not None and (each.highest < 0 or (not each.highest and each.is_below)):
            continue
        if each.lowest is None or each.lowest < 0:
            each = Bounds(Decimal(0), each.highest, False, each.is_below)
        if not each.are_empty:
            ways.append(sign + _magnitude(each, is_integer))
    return " | ".join(ways) or None


def _magnitude(bounds: Bounds, is_integer: bool) -> str:
    assert bounds.lowest is not None
    least = f"/({'|'.join(_at_least(bounds.lowest, bounds.is_above, is_integer))})/"
    if bounds.highest is None:
        return least
    return f"({least} & /({'|'.join(_at_most(bounds.highest, bounds.is_below, is_integer))})/)"


# Both return alternatives: one for each digit of the bound in which a number first differs from it,
# and those for numbers with more digits, or fewer.
def _at_least(bound: Decimal, is_above: bool, is_integer: bool) -> list[str]:
    whole, fraction = _digits(bound)
    any_fraction = "" if is_integer else r"(\.[0-9]+)?"
    ways = []
    if is_integer:
        ways.append(whole)
    elif fraction:
        for i, digit in enumerate(fraction):
            if digit != "9":
                ways.append(rf"{whole}\.{fraction[:i]}{_range(int(digit) + 1, 9)}[0-9]*")
        ways.append(rf"{whole}\.{fraction}[0-9]*" + ("[1-9][0-9]*" if is_above else ""))
    else:
        ways.append(whole + (r"\.[0-9]*[1-9][0-9]*" if is_above else any_fraction))
    for i, digit in enumerate(whole):
        if digit != "9":
            left = len(whole) - i - 1
            ways.append(f"{whole[:i]}({_range(int(digit) + 1, 9)}{_any(left)}){any_fraction}")
    ways.append(f"[1-9][0-9]{{{len(whole)},}}{any_fraction}")
    return ways


def _at_most(bound: Decimal, is_below: bool, is_integer: bool) -> list[str]:
    whole, fraction = _digits(bound)
    any_fraction = "" if is_integer else r"(\.[0-9]+)?"
    ways = []
    if len(whole) > 1:
        shorter = f"[1-9][0-9]{{0,{len(whole) - 2}}}" if len(whole) > 2 else "[1-9]"
        ways += [f"{shorter}{any_fraction}", f"0{any_fraction}"]
    for i, digit in enumerate(whole):
        first = 1 if i == 0 and len(whole) > 1 else 0
        if int(digit) > first:
            left = len(whole) - i - 1
            ways.append(f"{whole[:i]}({_range(first, int(digit) - 1)}{_any(left)}){any_fraction}")
    if is_integer:
        ways.append(whole)
    elif fraction:
        ways.append(whole)
        for i, digit in enumerate(fraction):
            if i:
                ways.append(rf"{whole}\.{fraction[:i]}")
            if digit != "0":
                ways.append(rf"{whole}\.{fraction[:i]}{_range(0, int(digit) - 1)}[0-9]*")
        if not is_below:
            ways.append(rf"{whole}\.{fraction}0*")
    elif not is_below:
        ways.append(rf"{whole}(\.0+)?")
    return ways


def multiples(factor: int, *, is_integer: bool) -> str | None:
    """Return what matches the multiples of a divisor of a power of ten; None for other factors.

    >>> multiples(50, is_integer=True)
    '/-?(0|50|[1-9][0-9]*(00|50))/'
    """
    n_digits = next((n for n in range(1, 30) if 10**n % factor == 0), None)
    if n_digits is None or 10**n_digits // factor > _MOST_RESIDUES:
        return None
    small = range(0, 10**n_digits, factor)
    ends = "|".join(f"{each:0{n_digits}}" for each in small)
    point = "" if is_integer else r"(\.0+)?"
    return f"/-?({'|'.join(map(str, small))}|[1-9][0-9]*({ends})){point}/"


def multiples_of_fraction(factor: Decimal) -> str | None:
    r"""Return what matches the multiples of a fraction of which 1 is one; None for other factors.

    >>> multiples_of_fraction(Decimal("0.25"))
    '/-?(0|[1-9][0-9]*)(\\.(0|25|5|75)0*)?/'
    """
    _, fraction = _digits(factor)
    n_digits, step = len(fraction), int(fraction)
    if factor >= 1 or 10**n_digits % step:
        return None
    if step == 1:
        ends = f"[0-9]{{1,{n_digits}}}"
    elif 10**n_digits // step > _MOST_RESIDUES:
        return None
    else:
        parts = (f"{each:0{n_digits}}".rstrip("0") for each in range(0, 10**n_digits, step))
        ends = f"({'|'.join(part or '0' for part in parts)})"
    return rf"/-?(0|[1-9][0-9]*)(\.{ends}0*)?/"


def is_too_long(bounds: Bounds) -> bool:
    """Whether a bound has more digits than an expression should."""
    return any(
        len(whole) + len(fraction) > _MOST_DIGITS
        for each in (bounds.lowest, bounds.highest)
        if each is not None
        for whole, fraction in [_digits(each)]
    )


def _digits(number: Decimal) -> tuple[str, str]:
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def _whole(number: Decimal, *, up: bool) -> Decimal:
    whole = int(number)  # towards 0
    return Decimal(whole + (1 if up and whole < number else -1 if not up and whole > number else 0))


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]"


def _any(n: int) -> str:
    return "" if n == 0 else "[0-9]" if n == 1 else f"[0-9]{{{n}}}"
