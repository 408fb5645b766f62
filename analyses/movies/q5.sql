-- What a unit of budget brings in, for films with cheerful and with gloomy overviews.

SELECT sentiment(overview) AS label, avg(revenue / budget) AS average, count(*) AS films
FROM movies
WHERE budget <> 0 AND revenue <> 0
GROUP BY label
ORDER BY label;
