SELECT name, count(*) AS appearances
FROM (
    SELECT unnest(pluck(c."cast", 'name')) AS name
    FROM movies() m
    JOIN credits() c ON c.id = m.id
    WHERE m.release_date >= DATE '2000-01-01'
      AND contains(m.production_countries, '''name'': ''Argentina''')
)
GROUP BY name
ORDER BY appearances DESC, name
LIMIT 10;
