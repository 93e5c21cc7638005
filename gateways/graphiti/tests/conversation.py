"""What is said in the parity tests, and what is asked about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SAID = [
    "I prefer aisle seats on business trips.",
    "I live in Berlin near the river.",
    "I work at the harbour museum.",
    "My sister Nora plays the cello.",
    "I drink green tea in the morning.",
    "I bought a red touring bicycle.",
    "I am allergic to walnuts.",
    "My dog Biscuit hates thunderstorms.",
    "I now prefer window seats on business trips.",
    "I read detective novels before sleeping.",
    "I moved to Hamburg with my sister.",
    "I like hiking in the Harz mountains.",
    "My favourite restaurant is the Blue Anchor.",
    "I use a standing desk at home.",
    "I collect old maps of the Baltic sea.",
    "I am learning Portuguese on weekends.",
]

ASKED = [
    "seat preference",
    "Where do I live?",
    "which seat on business trips",
    "Berlin",
    "Hamburg",
    "harbour museum",
    "Who plays the cello?",
    "tea in the morning",
    "bicycle",
    "walnuts allergy",
    "dog and thunderstorms",
    "Biscuit",
    "novels",
    "detective stories before sleeping",
    "sister",
    "Nora",
    "hiking",
    "mountains in the Harz",
    "restaurant",
    "Blue Anchor dinner",
    "standing desk",
    "home office",
    "old maps",
    "Baltic sea",
    "Portuguese",
    "languages on weekends",
    "what does mara drink",
    "what does mara collect",
    "where does mara work",
    "moved",
    "river",
    "window or aisle",
    "trips",
    "red",
    "allergic",
    "green tea or coffee",
    "touring bicycle in the mountains",
    "favourite",
    "weekend plans",
    "music lessons",
    "mara",
    "assistant",
    "the sea, the harbour, and the river",
    "a question about nothing that was said",
    "ticket to Lisbon",
    "Was mag mara?",
    "naïve café Ünïcode",
    "AND OR NOT (brackets) [and] {braces} ~ * ?",
    "seats seats seats",
    "sleeping dog",
    "museum job",
    "read",
]

BEGAN = datetime(2025, 3, 1, 9, tzinfo=UTC)


def turns() -> list[tuple[str, str, datetime]]:
    """Name, text and time of each episode."""
    return [(f"ev-{i:03}", f"mara(user): {text}\nassistant(assistant): Noted.", BEGAN + timedelta(days=i)) for i, text in enumerate(SAID)]
