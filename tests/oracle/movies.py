# SPDX-License-Identifier: Apache-2.0
"""movies: films, credits and ratings."""
from fractions import Fraction

from literals import names
from sentiment import sentiment
from tables import DATE, INT, TEXT, Table, decimal
from values import average_double, average_exact, double_units
from values import format_double, format_int, format_list, format_text

RATING_UNITS = 1000

TABLES = [
    Table(
        "movies",
        ["movies_metadata.csv"],
        [
            ("id", INT, True),
            ("title", TEXT, True),
            ("genres", TEXT, True),
            ("release_date", DATE, True),
            ("overview", TEXT, True),
            ("production_countries", TEXT, True),
            ("spoken_languages", TEXT, True),
            ("budget", INT, True),
            ("revenue", INT, True),
            ("original_language", TEXT, False),
        ],
    ),
    Table("credits", ["credits.csv"], [("id", INT, True), ("cast", TEXT, True)]),
    Table("ratings", ["ratings.csv"], [("movieId", INT, True), ("rating", decimal(6, 3), True)]),
]


class Film:
    def __init__(self, row):
        (
            self.id,
            self.title,
            self.genres,
            self.release_date,
            self.overview,
            self.production_countries,
            _spoken_languages,
            self.budget,
            self.revenue,
            self.original_language,
        ) = row


def _films(tables):
    return [Film(row) for row in tables["movies"]]


def _films_of(tables, country, since):
    return [
        film
        for film in _films(tables)
        if film.release_date >= since and country in names(film.production_countries)
    ]


def q1(tables, parameters):
    found = []
    for film in _films(tables):
        if not parameters["from_date"] <= film.release_date <= parameters["to_date"]:
            continue
        countries = names(film.production_countries)
        if parameters["country_a"] in countries and parameters["country_b"] in countries:
            found.append((film.title, film.id, names(film.genres)))
    return [[format_text(title), format_list(genres)] for title, _, genres in sorted(found)]


def q2(tables, parameters):
    budgets = {}
    for film in _films(tables):
        countries = names(film.production_countries)
        if len(countries) == 1:
            budgets[countries[0]] = budgets.get(countries[0], 0) + film.budget
    best = sorted(budgets.items(), key=lambda entry: (-entry[1], entry[0]))
    return [[format_text(name), format_int(total)] for name, total in best[: parameters["top"]]]


def q3(tables, parameters):
    ratings = {}
    for movie_id, rating in tables["ratings"]:
        total, count = ratings.get(movie_id, (0, 0))
        ratings[movie_id] = (total + rating, count + 1)
    # A film that is there twice counts each of its ratings twice: its average stays the same.
    films = _films_of(tables, parameters["country"], parameters["since"])
    averages = []
    for film_id, title in {(film.id, film.title) for film in films}:
        if film_id in ratings:
            total, count = ratings[film_id]
            averages.append((film_id, title, average_exact(Fraction(total, RATING_UNITS), count)))
    if not averages:
        return []
    highest = min(averages, key=lambda film: (-film[2], film[0], film[1]))
    lowest = min(averages, key=lambda film: (film[2], film[0], film[1]))
    return [
        [format_int(film_id), format_text(title), format_double(average)]
        for film_id, title, average in (highest, lowest)
    ]


def q4(tables, parameters):
    films = {}
    for film in _films_of(tables, parameters["country"], parameters["since"]):
        films[film.id] = films.get(film.id, 0) + 1
    appearances = {}
    for film_id, cast in tables["credits"]:
        if film_id in films:
            for name in names(cast):
                appearances[name] = appearances.get(name, 0) + films[film_id]
    best = sorted(appearances.items(), key=lambda entry: (-entry[1], entry[0]))
    return [[format_text(name), format_int(count)] for name, count in best[: parameters["top"]]]


def _returns_by_sentiment(films):
    by_label = {}
    for film in films:
        if film.budget != 0 and film.revenue != 0:
            label = sentiment(film.overview)
            units, count = by_label.get(label, (0, 0))
            units += double_units(float(film.revenue) / float(film.budget))
            by_label[label] = (units, count + 1)
    return [
        [format_text(label), format_double(average_double(units, count)), format_int(count)]
        for label, (units, count) in sorted(by_label.items())
    ]


def q5(tables, parameters):
    return _returns_by_sentiment(_films(tables))


def q5b(tables, parameters):
    films = _films_of(tables, parameters["us_country"], parameters["since"])
    return _returns_by_sentiment(
        film for film in films if film.original_language == parameters["language"]
    )


# name: (function, tables read, columns, parameters)
QUERIES = {
    "q1": (
        q1,
        ["movies"],
        ["title", "genres"],
        {
            "from_date": b"2000-01-01",
            "to_date": b"2009-12-31",
            "country_a": b"Argentina",
            "country_b": b"Spain",
        },
    ),
    "q2": (q2, ["movies"], ["country", "total_budget"], {"top": 5}),
    "q3": (
        q3,
        ["movies", "ratings"],
        ["id", "title", "average"],
        {"country": b"Argentina", "since": b"2000-01-01"},
    ),
    "q4": (
        q4,
        ["movies", "credits"],
        ["name", "appearances"],
        {"country": b"Argentina", "since": b"2000-01-01", "top": 10},
    ),
    "q5": (q5, ["movies"], ["label", "average", "films"], {}),
    "q5b": (
        q5b,
        ["movies"],
        ["label", "average", "films"],
        {
            "language": b"en",
            "us_country": b"United States of America",
            "since": b"2000-01-01",
        },
    ),
}
