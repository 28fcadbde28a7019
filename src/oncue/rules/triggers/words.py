"""Triggers in words, for people: what a schedule means, and what the clocks did to one of its times."""

from __future__ import annotations

from datetime import datetime
from typing import Final, assert_never

from oncue.rules.triggers import kinds
from oncue.rules.triggers.at import At
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.dialect import MONTHS, WEEKDAYS
from oncue.rules.triggers.every import Every, Step
from oncue.rules.triggers.pattern import MonthEnd, Pattern
from oncue.rules.triggers.placing import CALENDAR, FIXED, WILDCARD, Placing
from oncue.rules.triggers.rrule import Rrule

MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
GAP_WORDS: Final = {
    "after": "times that the clocks skip run right after the change",
    "skip": "times that the clocks skip are left out",
    "shift": "times that the clocks skip are moved by as much",
}
REPEAT_WORDS: Final = {
    "first": "times that they repeat run at the first copy",
    "last": "times that they repeat run at the last copy",
    "both": "times that they repeat run at both copies",
}
MOST_NAMED: Final = 4
SIXTY: Final = 60


def describe(trigger: At | Every | Cron | Rrule) -> str:
    """Return a short sentence that says when a trigger is due."""
    match trigger:
        case At():
            return _moment_words(trigger)
        case Every(_, zone, step, anchor):
            clock = "elapsed time" if step.is_elapsed else f"{zone.key} time"
            words = f"Every {_step_words(step)}, {clock}, counted from {_shown(anchor.astimezone(zone))}"
            return f"{words}{_placing_words(trigger.placing, WILDCARD if step.is_elapsed else CALENDAR)}."
        case Cron(_, zone, pattern, is_wildcard, placing):
            dst = _placing_words(placing, WILDCARD if is_wildcard else FIXED)
            sentence = f"{_time_words(pattern)}{_day_words(pattern)}, {zone.key} time{dst}."
            return sentence[0].upper() + sentence[1:]
        case Rrule():
            return _rule_words(trigger)
        case _:
            assert_never(trigger)


def kind_of(trigger: At | Every | Cron | Rrule) -> str:
    """Return the kind as a task file writes it."""
    return type(trigger).__name__.lower()


def note_of(trigger: At | Every | Cron | Rrule, moment: datetime) -> str | None:
    """Say what a change of the clocks did to one of a trigger's times: "moved from 02:30" or "first of two"."""
    if planned := kinds.skipped_walls(trigger, moment):
        names = [f"{wall:%H:%M:%S}".removesuffix(":00") for wall in planned[:MOST_NAMED]]
        more = f" and {len(planned) - MOST_NAMED} more" if len(planned) > MOST_NAMED else ""
        return f"moved from {', '.join(names)}{more}"
    local = moment.astimezone(trigger.zone)
    if local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset():
        return None
    return "second of two" if local.fold else "first of two"


def _moment_words(at: At) -> str:
    shown = [_shown(moment.astimezone(at.zone)) for moment in at.moments]
    if not shown:
        return f"Never: the clocks of {at.zone.key} skip {at.text}."
    return f"{'Once' if len(shown) == 1 else 'Twice'}, at {' and at '.join(shown)}, {at.zone.key} time."


def _placing_words(placing: Placing, default: Placing) -> str:
    """Return what is done with skipped and repeated times, where it is not what the kind does by itself."""
    words = [GAP_WORDS[placing.gap]] if placing.gap != default.gap else []
    words += [REPEAT_WORDS[placing.repeat]] if placing.repeat != default.repeat else []
    return "".join(f"; {word}" for word in words)


def _shown(local: datetime) -> str:
    return local.isoformat(" ", "seconds")


def _step_words(step: Step) -> str:
    minutes, seconds = divmod(step.elapsed.total_seconds(), 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = {"month": step.months, "day": step.days, "hour": hours, "minute": minutes, "second": seconds}
    named = [(name, number) for name, number in parts.items() if number]
    if len(named) == 1 and named[0][1] == 1:
        return named[0][0]
    return " and ".join(f"{number:g} {name}{'' if number == 1 else 's'}" for name, number in named)


def _time_words(pattern: Pattern) -> str:
    seconds, minutes, hours = _numbers(pattern.seconds), _numbers(pattern.minutes), _numbers(pattern.hours)
    if len(hours) * len(minutes) <= MOST_NAMED and len(seconds) == 1:
        second = f":{seconds[0]:02}" if seconds[0] else ""
        return "at " + _joined([f"{hour:02}:{minute:02}{second}" for hour in hours for minute in minutes])
    words = [] if seconds == [0] else [_unit_words("second", seconds)]
    if seconds == [0] or len(minutes) < SIXTY:
        words.append(_unit_words("minute", minutes))
    if len(hours) < 24:
        words.append(f"in hour{'s' if len(hours) > 1 else ''} {_spans(hours)}")
    elif not words[-1].startswith("every"):
        words[-1] += f" of every {'hour' if 'minute' in words[-1] else 'minute'}"
    return ", ".join(words)


def _unit_words(name: str, numbers: list[int]) -> str:
    """Return "every 5 minutes" where that is true from one hour to the next too, else the numbers."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else SIXTY
    if step < SIXTY and SIXTY % step == 0 and numbers == list(range(0, SIXTY, step)):
        return f"every {name}" if step == 1 else f"every {step} {name}s"
    return f"at {name}{'s' if len(numbers) > 1 else ''} {_spans(numbers)}"


def _day_words(pattern: Pattern) -> str:
    by_date, by_weekday = _date_words(pattern), _weekday_words(pattern)
    month = ""
    if pattern.months.bit_count() < len(MONTHS):
        month = f" in {_spans(_numbers(pattern.months), names=('', *MONTH_NAMES))}"
    if pattern.years is not None:
        month += f"{' of' if month else ' in'} {_spans(sorted(pattern.years))}"
    if by_date and by_weekday:
        both = f"on {by_date} or on {by_weekday}" if pattern.is_either else f"on {by_date} if it is {by_weekday}"
        return f", {both}{month}"
    if by_date or by_weekday:
        return f", on {by_date or by_weekday}{month}"
    return f", every day{month}" if month else ", every day" if pattern.hours.bit_count() < 24 else ""


def _date_words(pattern: Pattern) -> str:
    special, words = pattern.special or MonthEnd(), []
    days = _numbers(pattern.days)
    if len(days) == 31:
        return ""
    if days:
        words.append(f"day{'s' if len(days) > 1 else ''} {_spans(days)}")
    for k in _numbers(special.before_last):
        words.append(f"the day {k} before the last" if k else "the last day")
    if special.last_workday:
        words.append("the last workday")
    words += [f"the workday nearest to day {day}" for day in _numbers(special.nearest)]
    return f"{_joined(words, 'or')} of the month" if words else ""


def _weekday_words(pattern: Pattern) -> str:
    special, words = pattern.special or MonthEnd(), []
    days = _numbers(pattern.weekdays)
    if len(days) == len(WEEKDAYS):
        return ""
    if days:
        if days[0] == 0 and days[-1] == len(WEEKDAYS) - 1:
            days = [*days[1:], 7]
        words.append(_spans(days, names=(*WEEKDAY_NAMES, "Sunday")))
    words += [f"the last {WEEKDAY_NAMES[day]} of the month" for day in _numbers(special.last_weekdays)]
    for bit in _numbers(special.nth_weekdays):
        words.append(f"the {ORDINALS[bit // 7]} {WEEKDAY_NAMES[bit % 7]} of the month")
    return _joined(words, "or")


def _rule_words(rule: Rrule) -> str:
    unit = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour"}
    name = unit.get(rule.freq, "minute")
    pace = f"every {name}" if rule.interval == 1 else f"every {rule.interval} {name}s"
    limits = [word for word in rule.text.upper().split(";") if word.startswith("BY")]
    narrowed = f" ({', '.join(limits)})" if limits else ""
    end = f", {rule.count} times" if rule.count else ", with an end" if rule.has_end else ""
    clock = "elapsed time" if rule.is_elapsed else f"{rule.zone.key} time"
    dst = _placing_words(rule.placing, WILDCARD if rule.is_elapsed else CALENDAR)
    return f"Calendar rule: {pace}{narrowed} from {_shown(rule.start)} on{end}, {clock}{dst}."


def _spans(numbers: list[int], *, names: tuple[str, ...] = ()) -> str:
    """Return numbers in words, three and more in a row as a range."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = []
    for span in spans:
        shown = [names[number] if names else str(number) for number in span]
        words += [f"{shown[0]} to {shown[-1]}"] if len(span) > 2 else shown
    return _joined(words)


def _joined(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def _numbers(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
