SELECT EXTRACT(year FROM release_date) AS year, count(*) AS films, avg(budget) AS budget
FROM movies
WHERE overview ~* '\b(letters?|winter|memory)\b'
GROUP BY year
ORDER BY year
