-- The dialect and the types are told, so that nothing is sniffed and a bad value costs its record
-- while it is read.
SET preserve_insertion_order = false;

CREATE MACRO movies() AS TABLE
SELECT id, title, genres, release_date, overview, production_countries, spoken_languages, budget,
       revenue, original_language
FROM read_csv('{data}/movies_metadata.csv', auto_detect = false, header = true, delim = ',',
    quote = '"', escape = '"', ignore_errors = true, columns = {
    'adult': 'VARCHAR', 'belongs_to_collection': 'VARCHAR', 'budget': 'BIGINT',
    'genres': 'VARCHAR', 'homepage': 'VARCHAR', 'id': 'BIGINT', 'imdb_id': 'VARCHAR',
    'original_language': 'VARCHAR', 'original_title': 'VARCHAR', 'overview': 'VARCHAR',
    'popularity': 'VARCHAR', 'poster_path': 'VARCHAR', 'production_companies': 'VARCHAR',
    'production_countries': 'VARCHAR', 'release_date': 'DATE', 'revenue': 'DOUBLE',
    'runtime': 'VARCHAR', 'spoken_languages': 'VARCHAR', 'status': 'VARCHAR',
    'tagline': 'VARCHAR', 'title': 'VARCHAR', 'video': 'VARCHAR', 'vote_average': 'VARCHAR',
    'vote_count': 'VARCHAR'})
WHERE id IS NOT NULL AND title IS NOT NULL AND genres IS NOT NULL AND release_date IS NOT NULL
  AND overview IS NOT NULL AND production_countries IS NOT NULL AND spoken_languages IS NOT NULL
  AND budget IS NOT NULL AND revenue IS NOT NULL;

CREATE MACRO credits() AS TABLE
SELECT id, "cast"
FROM read_csv('{data}/credits.csv', auto_detect = false, header = true, delim = ',',
    quote = '"', escape = '"', ignore_errors = true,
    columns = {'cast': 'VARCHAR', 'crew': 'VARCHAR', 'id': 'BIGINT'})
WHERE id IS NOT NULL AND "cast" IS NOT NULL;

CREATE MACRO ratings() AS TABLE
SELECT userId, movieId, rating, timestamp
FROM read_csv('{data}/ratings.csv', auto_detect = false, header = true, delim = ',',
    quote = '', escape = '', ignore_errors = true, columns = {
    'userId': 'VARCHAR', 'movieId': 'INTEGER', 'rating': 'DECIMAL(6,3)', 'timestamp': 'VARCHAR'})
WHERE movieId IS NOT NULL AND rating IS NOT NULL;

-- Only ever asked for names, in a list of Python dictionaries. A list that is cut off is empty.
CREATE MACRO pluck(list, key) AS
list_transform(regexp_extract_all(CASE WHEN ends_with(list, ']') THEN list ELSE '' END,
                                  '(?:, |\{)''name'': (''[^'']*''|"[^"]*")', 1),
               lambda x: x[2:-2]);
