-- Films of the 2000s that both Argentina and Spain produced.

PARAMETER from_date = DATE '2000-01-01';
PARAMETER to_date = DATE '2009-12-31';
PARAMETER country_a = 'Argentina';
PARAMETER country_b = 'Spain';

SELECT title, pluck(genres, 'name') AS genres
FROM movies
WHERE release_date BETWEEN $from_date AND $to_date
  AND list_contains(pluck(production_countries, 'name'), $country_a)
  AND list_contains(pluck(production_countries, 'name'), $country_b)
ORDER BY title, id;
