-- The same for films in one language, from one country, since a date.

PARAMETER language = 'en';
PARAMETER us_country = 'United States of America';
PARAMETER since = DATE '2000-01-01';

SELECT sentiment(overview) AS label, avg(revenue / budget) AS average, count(*) AS films
FROM movies
WHERE budget <> 0 AND revenue <> 0
  AND original_language = $language
  AND release_date >= $since
  AND list_contains(pluck(production_countries, 'name'), $us_country)
GROUP BY label
ORDER BY label;
