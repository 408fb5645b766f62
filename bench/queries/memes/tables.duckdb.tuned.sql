-- The dialect and the types are told, so that nothing is sniffed.
SET preserve_insertion_order = false;

CREATE MACRO posts() AS TABLE
SELECT id, score, url, title, domain
FROM read_csv('{data}/posts.csv', auto_detect = false, header = true, delim = ',',
    quote = '"', escape = '"', ignore_errors = true, columns = {
    'type': 'VARCHAR', 'id': 'VARCHAR', 'subreddit.id': 'VARCHAR', 'subreddit.name': 'VARCHAR',
    'subreddit.nsfw': 'VARCHAR', 'created_utc': 'VARCHAR', 'permalink': 'VARCHAR',
    'domain': 'VARCHAR', 'url': 'VARCHAR', 'selftext': 'VARCHAR', 'title': 'VARCHAR',
    'score': 'BIGINT'})
WHERE id IS NOT NULL AND score IS NOT NULL;

CREATE MACRO comments() AS TABLE
SELECT permalink, body, TRY_CAST(sentiment AS DOUBLE) AS sentiment
FROM read_csv('{data}/comments.csv', auto_detect = false, header = true, delim = ',',
    quote = '"', escape = '"', ignore_errors = true, columns = {
    'type': 'VARCHAR', 'id': 'VARCHAR', 'subreddit.id': 'VARCHAR', 'subreddit.name': 'VARCHAR',
    'subreddit.nsfw': 'VARCHAR', 'created_utc': 'VARCHAR', 'permalink': 'VARCHAR',
    'body': 'VARCHAR', 'sentiment': 'VARCHAR', 'score': 'VARCHAR'})
WHERE permalink IS NOT NULL;
