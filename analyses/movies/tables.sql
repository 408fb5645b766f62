-- Films, credits and ratings, as in "The Movies Dataset".
-- genres, production_countries, spoken_languages and cast are lists of Python dictionaries:
-- pluck(column, 'name') gives the names in them.

CREATE TABLE movies (
    id INT NOT NULL,
    title TEXT NOT NULL,
    genres TEXT NOT NULL,
    release_date DATE NOT NULL,
    overview TEXT NOT NULL,
    production_countries TEXT NOT NULL,
    spoken_languages TEXT NOT NULL,
    budget INT NOT NULL,
    revenue INT NOT NULL,
    original_language TEXT
) FROM 'movies_metadata.csv';

CREATE TABLE credits (
    id INT NOT NULL,
    "cast" TEXT NOT NULL
) FROM 'credits.csv';

CREATE TABLE ratings (
    movieId INT NOT NULL,
    rating DECIMAL(6,3) NOT NULL
) FROM 'ratings.csv';
