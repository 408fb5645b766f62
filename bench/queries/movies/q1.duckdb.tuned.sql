-- A search for the text spares the lists.
SELECT title, pluck(genres, 'name') AS genres
FROM movies()
WHERE release_date BETWEEN DATE '2000-01-01' AND DATE '2009-12-31'
  AND contains(production_countries, '''name'': ''Argentina''')
  AND contains(production_countries, '''name'': ''Spain''')
ORDER BY title, id, genres;
