# SPDX-License-Identifier: Apache-2.0
"""coffee: sales of a chain of cafés."""
from fractions import Fraction

from tables import DATE, INT, TEXT, TIMESTAMP, Table, decimal
from values import format_date, format_decimal, format_int, format_text

AMOUNT = decimal(18, 3)
AMOUNT_SCALE = 3

TABLES = [
    Table(
        "transactions",
        ["transactions/*.csv", "transactions*.csv"],
        [
            ("transaction_id", TEXT, True),
            ("store_id", INT, True),
            ("final_amount", AMOUNT, True),
            ("created_at", TIMESTAMP, True),
            ("user_id", INT, False),
        ],
    ),
    Table(
        "transaction_items",
        ["transaction_items/*.csv", "transaction_items*.csv"],
        [
            ("item_id", INT, True),
            ("quantity", INT, True),
            ("subtotal", AMOUNT, True),
            ("created_at", TIMESTAMP, True),
        ],
    ),
    Table(
        "users",
        ["users/*.csv", "users*.csv"],
        [("user_id", INT, True), ("birthdate", DATE, True)],
    ),
    Table(
        "stores",
        ["stores/*.csv", "stores*.csv"],
        [("store_id", INT, True), ("store_name", TEXT, True)],
    ),
    Table(
        "menu_items",
        ["menu_items/*.csv", "menu_items*.csv"],
        [("item_id", INT, True), ("item_name", TEXT, True)],
    ),
]


def _in_years(created_at, parameters):
    return parameters["first_year"] <= int(created_at[0][:4]) <= parameters["last_year"]


def _in_hours(created_at, parameters):
    return (parameters["opens"], 0) <= created_at[1:] <= (parameters["closes"], 0)


def q1(tables, parameters):
    minimum = parameters["minimum"] * 10**AMOUNT_SCALE
    found = [
        (transaction_id, amount)
        for transaction_id, _, amount, created_at, _ in tables["transactions"]
        if amount >= minimum
        and _in_years(created_at, parameters)
        and _in_hours(created_at, parameters)
    ]
    return [
        [format_text(transaction_id), format_decimal(amount, AMOUNT_SCALE)]
        for transaction_id, amount in sorted(found)
    ]


def _best_items(tables, parameters, measure):
    """Per month the item of the menu with the largest sum: (month, name, sum)."""
    sums = {}
    for item_id, quantity, subtotal, created_at in tables["transaction_items"]:
        if _in_years(created_at, parameters):
            key = (created_at[0][:7], item_id)
            sums[key] = sums.get(key, 0) + measure(quantity, subtotal)
    best = {}
    for (month, item_id), total in sums.items():
        for menu_id, name in tables["menu_items"]:
            if menu_id == item_id:
                candidate = (-total, item_id, name)
                best[month] = min(best.get(month, candidate), candidate)
    return [(month, name, -negative) for month, (negative, _, name) in sorted(best.items())]


def q2a(tables, parameters):
    return [
        [format_text(month), format_text(name), format_int(total)]
        for month, name, total in _best_items(tables, parameters, lambda quantity, _: quantity)
    ]


def q2b(tables, parameters):
    return [
        [format_text(month), format_text(name), format_decimal(total, AMOUNT_SCALE)]
        for month, name, total in _best_items(tables, parameters, lambda _, subtotal: subtotal)
    ]


def q3(tables, parameters):
    sums = {}
    for _, store_id, amount, created_at, _ in tables["transactions"]:
        if _in_years(created_at, parameters) and _in_hours(created_at, parameters):
            date = created_at[0]
            half = date[:4] + (b"-H1" if date[5:7] <= b"06" else b"-H2")
            sums[(half, store_id)] = sums.get((half, store_id), 0) + amount
    found = []
    for (half, store_id), total in sums.items():
        for other_id, name in tables["stores"]:
            if other_id == store_id:
                found.append((half, name, store_id, total))
    return [
        [format_text(half), format_text(name), format_decimal(total, AMOUNT_SCALE)]
        for half, name, _, total in sorted(found)
    ]


def _best_users(tables, parameters):
    """Per store the users with most transactions: {store_id: [(user_id, count)]}."""
    counts = {}
    for _, store_id, _, created_at, user_id in tables["transactions"]:
        if user_id is not None and _in_years(created_at, parameters):
            users = counts.setdefault(store_id, {})
            users[user_id] = users.get(user_id, 0) + 1
    best = {}
    for store_id, users in counts.items():
        ranked = sorted(users.items(), key=lambda entry: (-entry[1], entry[0]))
        best[store_id] = ranked[: parameters["best"]]
    return best


def q4(tables, parameters):
    birthdates = {}
    for user_id, birthdate in tables["users"]:
        birthdates.setdefault(user_id, []).append(birthdate)
    best = _best_users(tables, parameters)
    found = []
    for store_id, name in tables["stores"]:
        for user_id, count in best.get(store_id, []):
            for birthdate in birthdates.get(user_id, [None]):
                found.append((name, store_id, -count, user_id, birthdate))
    # Only rows of the same user can differ in nothing but the birthdate, so None meets no bytes.
    found.sort()
    return [
        [format_text(name), format_int(user_id), format_date(birthdate), format_int(-negative)]
        for name, _, negative, user_id, birthdate in found
    ]


YEARS = {"first_year": 2024, "last_year": 2025}
HOURS = {"opens": b"06:00:00", "closes": b"23:00:00"}

# name: (function, tables read, columns, parameters)
QUERIES = {
    "q1": (
        q1,
        ["transactions"],
        ["transaction_id", "final_amount"],
        {**YEARS, **HOURS, "minimum": Fraction(75)},
    ),
    "q2a": (q2a, ["transaction_items", "menu_items"], ["month", "item_name", "quantity"], YEARS),
    "q2b": (q2b, ["transaction_items", "menu_items"], ["month", "item_name", "subtotal"], YEARS),
    "q3": (q3, ["transactions", "stores"], ["half", "store_name", "amount"], {**YEARS, **HOURS}),
    "q4": (
        q4,
        ["transactions", "stores", "users"],
        ["store_name", "user_id", "birthdate", "transactions"],
        {**YEARS, "best": 3},
    ),
}
